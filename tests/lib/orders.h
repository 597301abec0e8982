/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Orders for a test module: a guest script writes them, one line each, to a file
 * in debugfs; the write returns when the order is done, with the error it ended with.
 */
#ifndef TESTS_ORDERS_H
#define TESTS_ORDERS_H

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>

struct order {
	const char *word;
	int (*run)(char *arg);		/* with the rest of the line */
};

static DEFINE_MUTEX(orders_mutex);	/* one order at a time */

/* The table, which ends with an empty order, is the file's private data. */
static ssize_t orders_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	const struct order *order;
	char line[128], *arg = line, *word;
	int err = -EINVAL;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = '\0';
	word = strsep(&arg, "\n ");
	arg = strim(arg ?: "");
	mutex_lock(&orders_mutex);
	for (order = file->private_data; order->word; order++) {
		if (!strcmp(order->word, word))
			err = order->run(arg);
	}
	mutex_unlock(&orders_mutex);
	return err ?: len;
}

static const struct file_operations orders_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = orders_write,
};

static inline struct dentry *orders_open(const char *name, const struct order *orders)
{
	struct dentry *dir = debugfs_create_dir(name, NULL);

	debugfs_create_file("do", 0200, dir, (void *)orders, &orders_fops);
	return dir;
}

#endif
