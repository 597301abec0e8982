// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * debugfs: kdhca/DEVICE/settings shows what the device is like, and takes changes, most of
 * which concern what is made from then on; kdhca/DEVICE/do takes orders, which end with an
 * errno or have been carried out.
 */
#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kdhca.h"

#define TEXT_MAX	4096

static struct dentry *top;

static void qp_fails(struct kdhca_qp *qp)
{
	mutex_lock(&qp->rx);
	kdhca_qp_error(qp);
	mutex_unlock(&qp->rx);
	if (qp->dev->set.iwarp)
		kdhca_iw_break(qp);
}

/* Of a QP of that number, or of any that is not QP 1. */
static int order_qp(struct kdhca_dev *dev, u32 number, enum ib_event_type type)
{
	struct kdhca_qp *qp;
	u32 at = number;

	qp = kdhca_qp_next(dev, &at);
	if (!qp)
		return -ENOENT;
	if (type == IB_EVENT_QP_FATAL)
		qp_fails(qp);
	kdhca_irq_event(&qp->irq, type);
	kdhca_qp_put(qp);
	return 0;
}

/* All QPs that use the CQ or the SRQ. */
static void users_fail(struct kdhca_dev *dev, const struct kdhca_cq *cq,
		       const struct kdhca_srq *srq)
{
	struct kdhca_qp *qp;
	u32 at = 0;

	for (; (qp = kdhca_qp_next(dev, &at)); at++) {
		if (cq ? qp->scq == cq || qp->rcq == cq : qp->srq == srq) {
			qp_fails(qp);
			kdhca_irq_event(&qp->irq, IB_EVENT_QP_FATAL);
		}
		kdhca_qp_put(qp);
	}
}

/* The CQ of the first QP fails, or the SRQ of the first that has one, and all who use it. */
static int order_queue(struct kdhca_dev *dev, u32 number, enum ib_event_type type)
{
	struct kdhca_qp *qp;
	u32 at = number;
	int ret = -ENOENT;

	for (; ret && (qp = kdhca_qp_next(dev, &at)); at++) {
		if (type != IB_EVENT_SRQ_ERR) {
			kdhca_cq_error(qp->rcq);
			users_fail(dev, qp->rcq, NULL);
			ret = 0;
		} else if (qp->srq) {
			kdhca_irq_event(&qp->srq->irq, type);
			users_fail(dev, NULL, qp->srq);
			ret = 0;
		}
		kdhca_qp_put(qp);
	}
	return ret;
}

static int order_all_fail(struct kdhca_dev *dev, u32 unused, enum ib_event_type type)
{
	struct kdhca_qp *qp;
	u32 at = 0;

	for (; (qp = kdhca_qp_next(dev, &at)); at++) {
		qp_fails(qp);
		kdhca_qp_put(qp);
	}
	kdhca_irq_event(&dev->irq, type);
	return 0;
}

static int order_port(struct kdhca_dev *dev, u32 unused, enum ib_event_type type)
{
	WRITE_ONCE(dev->down, type == IB_EVENT_PORT_ERR);
	kdhca_irq_event(&dev->irq, type);
	return 0;
}

static int order_gid(struct kdhca_dev *dev, u32 unused, enum ib_event_type type)
{
	kdhca_irq_event(&dev->irq, type);
	return 0;
}

static int order_unplug(struct kdhca_dev *dev, u32 unused, enum ib_event_type unused2)
{
	return kdhca_dev_unplug(dev);
}

static const struct {
	const char *name;
	int (*fn)(struct kdhca_dev *dev, u32 number, enum ib_event_type type);
	enum ib_event_type type;
} orders[] = {
	{ "port-down", order_port, IB_EVENT_PORT_ERR },
	{ "port-up", order_port, IB_EVENT_PORT_ACTIVE },
	{ "gid-change", order_gid, IB_EVENT_GID_CHANGE },
	{ "fatal", order_all_fail, IB_EVENT_DEVICE_FATAL },
	{ "qp-fatal", order_qp, IB_EVENT_QP_FATAL },
	{ "comm-est", order_qp, IB_EVENT_COMM_EST },
	{ "last-wqe", order_qp, IB_EVENT_QP_LAST_WQE_REACHED },
	{ "cq-err", order_queue, IB_EVENT_CQ_ERR },
	{ "srq-err", order_queue, IB_EVENT_SRQ_ERR },
	{ "unplug", order_unplug },
};

static int order(struct kdhca_dev *dev, const char *what, u32 n)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++)
		if (!strcmp(what, orders[i].name))
			return orders[i].fn(dev, n, orders[i].type);
	return -EINVAL;
}

static ssize_t take_text(struct file *file, const char __user *user, size_t len,
			 int (*fn)(struct kdhca_dev *dev, const char *text))
{
	char *text;
	int ret;

	if (len >= TEXT_MAX)
		return -EINVAL;
	text = memdup_user_nul(user, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = fn(file->private_data, text);
	kfree(text);
	return ret ?: len;
}

static int take_order(struct kdhca_dev *dev, const char *text)
{
	char what[16];
	u32 n = 0;

	return sscanf(text, "%15s %u", what, &n) >= 1 ? order(dev, what, n) : -EINVAL;
}

static ssize_t order_write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	return take_text(file, user, len, take_order);
}

static ssize_t settings_read(struct file *file, char __user *user, size_t len, loff_t *pos)
{
	struct kdhca_dev *dev = file->private_data;
	char *text = kzalloc(TEXT_MAX, GFP_KERNEL);
	ssize_t ret;

	if (!text)
		return -ENOMEM;
	ret = simple_read_from_buffer(user, len, pos, text,
				      kdhca_settings_name(text, TEXT_MAX, &dev->set));
	kfree(text);
	return ret;
}

static int take_settings(struct kdhca_dev *dev, const char *text)
{
	return kdhca_settings_parse(&dev->set, text);
}

static ssize_t settings_write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	return take_text(file, user, len, take_settings);
}

static const struct file_operations order_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = order_write,
};

static const struct file_operations settings_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = settings_read,
	.write = settings_write,
};

void kdhca_order_add(struct kdhca_dev *dev)
{
	dev->dir = debugfs_create_dir(dev_name(&dev->ibdev.dev), top);
	debugfs_create_file("do", 0200, dev->dir, dev, &order_fops);
	debugfs_create_file("settings", 0600, dev->dir, dev, &settings_fops);
}

void kdhca_order_remove(struct kdhca_dev *dev)
{
	debugfs_remove_recursive(dev->dir);
	dev->dir = NULL;
}

void kdhca_order_init(void)
{
	top = debugfs_create_dir("kdhca", NULL);
}

void kdhca_order_exit(void)
{
	debugfs_remove_recursive(top);
}
