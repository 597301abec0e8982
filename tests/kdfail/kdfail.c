// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdfail - each call with its first allocation failing, then with its second one, and so on
 * until it makes none that has not failed. It must say DAT_INSUFFICIENT_RESOURCES or succeed;
 * what frees must succeed. The object it was made on must be as before.
 *
 * All this happens while the module loads; the load fails if anything was wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/slab.h>

#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

static __printf(1, 2) int fail(const char *fmt, ...);

#include "../calls.h"

#define MOST	400		/* allocations in a call */
#define LONG	(60 * HZ)

static char *ia;
static uint rounds = 1;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often (default 1)");

static int faults;
static const char *now = "";
static u32 total, refused;

static int fail(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	faults++;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("FAULT: %s: %pV\n", now, &vaf);
	va_end(args);
	return -EIO;
}

/* ---- what the calls work on ---- */

static struct sockaddr_storage addr;
static DAT_IA_HANDLE the_ia, ia2;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE dto, conn, cr_evd, async;
static DAT_PSP_HANDLE the_psp;
static DAT_CONN_QUAL port;
static DAT_EP_HANDLE active, passive;
static DAT_SRQ_HANDLE the_srq;
static DAT_LMR_HANDLE the_lmr;
static DAT_CR_HANDLE cr;
static DAT_HANDLE out;		/* what a call has made */
static u8 *mem;
static DECLARE_COMPLETION(asked);
static DECLARE_WAIT_QUEUE_HEAD(wait);
static int ups, overs;

#define MEM	(5 * PAGE_SIZE)

static void nothing_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	cr = event->event_data.cr_arrival_event_data.cr_handle;
	complete(&asked);
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		WRITE_ONCE(ups, ups + 1);
	else
		WRITE_ONCE(overs, overs + 1);
	wake_up_all(&wait);
}

static const DAT_UPCALL_OBJECT on_nothing = { NULL, nothing_upcall };
static const DAT_UPCALL_OBJECT on_conn = { NULL, conn_upcall };
static const DAT_UPCALL_OBJECT on_cr = { NULL, cr_upcall };

static DAT_RETURN ep_make(DAT_EP_HANDLE *ep)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
		.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return dat_ep_create(the_ia, pz, dto, dto, conn, &attr, ep);
}

static int ground_open(void)
{
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err;

	now = "setting up";
	mem = kzalloc(MEM, GFP_KERNEL);
	if (!mem || !attr)
		return -ENOMEM;
	err = TRY(dat_ia_open, ia, 64, &async, &the_ia) ?:
	      TRY(dat_ia_query, the_ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr, 0, NULL) ?:
	      TRY(dat_pz_create, the_ia, &pz) ?:
	      TRY(dat_evd_kcreate, the_ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing,
		  DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &dto) ?:
	      TRY(dat_evd_kcreate, the_ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &on_conn,
		  DAT_EVD_CONNECTION_FLAG, &conn) ?:
	      TRY(dat_evd_kcreate, the_ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &on_cr,
		  DAT_EVD_CR_FLAG, &cr_evd) ?:
	      TRY(dat_psp_create_any, the_ia, &port, cr_evd, DAT_PSP_CONSUMER_FLAG, &the_psp) ?:
	      TRY(dat_srq_create, the_ia, pz, &srq, &the_srq) ?:
	      TRY(ep_make, &active) ?: TRY(ep_make, &passive);
	if (!err && attr->ia_address_ptr)
		memcpy(&addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
								     sizeof(struct sockaddr_in));
	kfree(attr);
	return err;
}

/* ---- the calls ---- */

static DAT_RETURN ia_open(void)
{
	DAT_EVD_HANDLE evd = NULL;

	return dat_ia_open(ia, 8, &evd, &ia2);
}

static DAT_RETURN ia_close(void)
{
	return dat_ia_close(ia2, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN pz_create(void)
{
	return dat_pz_create(the_ia, &out);
}

static DAT_RETURN pz_free(void)
{
	return dat_pz_free(out);
}

static DAT_RETURN evd_soft(void)
{
	return dat_evd_kcreate(the_ia, 100, DAT_UPCALL_MANY, &on_nothing, DAT_EVD_SOFTWARE_FLAG,
			       &out);
}

static DAT_RETURN evd_dto(void)
{
	return dat_evd_kcreate(the_ia, 100, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing,
			       DAT_EVD_DTO_FLAG, &out);
}

static DAT_RETURN evd_all(void)
{
	return dat_evd_kcreate(the_ia, 100, DAT_UPCALL_NOTIFY, &on_nothing, DAT_EVD_DEFAULT_FLAG,
			       &out);
}

static DAT_RETURN evd_grow(void)
{
	return dat_evd_resize(out, 1000);
}

static DAT_RETURN evd_many(void)
{
	return dat_evd_modify_upcall(out, DAT_UPCALL_MANY, &on_nothing, DAT_UPCALL_INVOC_ANY);
}

static DAT_RETURN evd_teardown(void)
{
	return dat_evd_modify_upcall(out, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW);
}

static DAT_RETURN evd_free(void)
{
	return dat_evd_free(out);
}

static DAT_RETURN ep_create(void)
{
	return ep_make(&out);
}

static DAT_RETURN ep_create_bare(void)
{
	return dat_ep_create(the_ia, NULL, NULL, NULL, NULL, NULL, &out);
}

static DAT_RETURN ep_create_srq(void)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
		.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return dat_ep_create_with_srq(the_ia, pz, dto, dto, conn, the_srq, &attr, &out);
}

static DAT_RETURN ep_grow(void)
{
	DAT_EP_PARAM param = { .ep_attr.max_request_dtos = 32 };

	return dat_ep_modify(out, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
}

static DAT_RETURN ep_reset(void)
{
	return dat_ep_reset(out);
}

static DAT_RETURN ep_free(void)
{
	return dat_ep_free(out);
}

static DAT_RETURN srq_create(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };

	return dat_srq_create(the_ia, pz, &attr, &out);
}

static DAT_RETURN srq_grow(void)
{
	return dat_srq_resize(out, 500);
}

static DAT_RETURN srq_free(void)
{
	return dat_srq_free(out);
}

static DAT_RETURN lmr_virtual(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = mem };

	return dat_lmr_kcreate(the_ia, DAT_MEM_TYPE_VIRTUAL, region, MEM, pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, 0, &out, NULL, NULL, NULL, NULL);
}

static DAT_RETURN lmr_physical(void)
{
	DAT_PADDR pages[2] = { virt_to_phys(mem), virt_to_phys(mem) + PAGE_SIZE };
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };

	return dat_lmr_kcreate(the_ia, DAT_MEM_TYPE_PHYSICAL, region, 2, pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &out, NULL, NULL, NULL,
			       NULL);
}

static DAT_RETURN lmr_of_lmr(void)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = the_lmr };

	return dat_lmr_kcreate(the_ia, DAT_MEM_TYPE_LMR, region, 0, pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, 0, &out, NULL, NULL, NULL, NULL);
}

static DAT_RETURN lmr_allocate(void)
{
	return dat_lmr_allocate(the_ia, pz, 16, DAT_LMR_SCOPE_PZ, &out);
}

static DAT_RETURN lmr_free(void)
{
	return dat_lmr_free(out);
}

static DAT_RETURN rmr_create(void)
{
	return dat_rmr_create(pz, &out);
}

static DAT_RETURN rmr_free(void)
{
	return dat_rmr_free(out);
}

static DAT_RETURN psp_any(void)
{
	DAT_CONN_QUAL any;

	return dat_psp_create_any(the_ia, &any, cr_evd, DAT_PSP_PROVIDER_FLAG, &out);
}

static DAT_RETURN psp_create(void)
{
	return dat_psp_create(the_ia, 4242, cr_evd, DAT_PSP_CONSUMER_FLAG, &out);
}

static DAT_RETURN psp_free(void)
{
	return dat_psp_free(out);
}

static DAT_RETURN rsp_create(void)
{
	return dat_rsp_create(the_ia, 4243, passive, cr_evd, &out);
}

static DAT_RETURN rsp_free(void)
{
	return dat_rsp_free(out);
}

static DAT_RETURN csp_create(void)
{
	struct sockaddr_storage at = addr;
	DAT_COMM comm = { at.ss_family, SOCK_STREAM, 0 };

	((struct sockaddr_in *)&at)->sin_port = htons(4244);
	return dat_csp_create(the_ia, &comm, (DAT_IA_ADDRESS_PTR)&at, cr_evd, &out);
}

static DAT_RETURN csp_free(void)
{
	return dat_csp_free(out);
}

static DAT_RETURN ia_attributes(void)
{
	static DAT_IA_ATTR attr;
	static DAT_PROVIDER_ATTR prov;

	return dat_ia_query(the_ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &prov);
}

static DAT_RETURN ia_hint(void)
{
	DAT_VLEN length;
	DAT_VADDR alignment;

	return dat_ia_memtype_hint(the_ia, DAT_MEM_TYPE_VIRTUAL, MEM, 0, &length, &alignment);
}

static DAT_RETURN ia_reserved(void)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	return dat_ia_reserved_lmr(the_ia, &lmr, &key);
}

static DAT_RETURN ia_list(void)
{
	static DAT_PROVIDER_INFO info[4];
	DAT_PROVIDER_INFO *list[] = { &info[0], &info[1], &info[2], &info[3] };
	DAT_COUNT n;

	return dat_registry_list_providers(ARRAY_SIZE(list), &n, list);
}

/* ---- a connection ---- */

static DAT_RETURN connect(void)
{
	return dat_ep_connect(active, (DAT_IA_ADDRESS_PTR)&addr, port, DAT_TIMEOUT_INFINITE, 0,
			      NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN request(void)
{
	DAT_RETURN ret;

	reinit_completion(&asked);
	ups = 0;
	overs = 0;
	ret = connect();
	if (ret == DAT_SUCCESS && !wait_for_completion_timeout(&asked, LONG))
		fail("nobody has asked");
	return ret;
}

static DAT_RETURN accept(void)
{
	return dat_cr_accept(cr, passive, 0, NULL);
}

static DAT_RETURN accepted(void)
{
	DAT_RETURN ret = request();

	if (ret == DAT_SUCCESS)
		ret = accept();
	if (ret == DAT_SUCCESS && !wait_event_idle_timeout(wait, READ_ONCE(ups) == 2, LONG))
		fail("no connection");
	return ret;
}

static DAT_RETURN reject(void)
{
	return dat_cr_reject(cr, 0, NULL);
}

static DAT_RETURN handoff(void)
{
	reinit_completion(&asked);
	return dat_cr_handoff(cr, port);
}

static DAT_RETURN disconnect(void)
{
	return dat_ep_disconnect(active, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN over(int n)
{
	if (!wait_event_idle_timeout(wait, READ_ONCE(overs) == n, LONG))
		fail("no end: %d of %d", overs, n);
	return DAT_SUCCESS;
}

static DAT_RETURN both_over(void)
{
	return over(2);
}

static DAT_RETURN reset_active(void)
{
	return dat_ep_reset(active);
}

static DAT_RETURN after_connect(void)
{
	if (!wait_for_completion_timeout(&asked, LONG))
		fail("nobody has asked");
	reject();
	over(1);
	return dat_ep_reset(active);
}

static DAT_RETURN before_connect(void)
{
	reinit_completion(&asked);
	ups = 0;
	overs = 0;
	return DAT_SUCCESS;
}

static DAT_RETURN after_handoff(void)
{
	return after_connect();
}

static DAT_RETURN after_accept(void)
{
	DAT_RETURN ret;

	/* it is accepted; what comes of that is told by an event */
	if (!wait_event_idle_timeout(wait, READ_ONCE(ups) == 2 || READ_ONCE(overs) == 2, LONG))
		fail("no outcome: %d of 2 ends, %d over", ups, overs);
	ret = disconnect();
	over(2);
	dat_ep_reset(passive);
	return ret ?: dat_ep_reset(active);
}

/*
 * What could not be allocated may have been the message to the other side, which then knows
 * nothing and would ask again after a while: so here both leave by themselves.
 */
static DAT_RETURN after_reject(void)
{
	disconnect();
	over(1);
	return dat_ep_reset(active);
}

static DAT_RETURN after_disconnect(void)
{
	dat_ep_disconnect(passive, DAT_CLOSE_GRACEFUL_FLAG);
	over(2);
	dat_ep_reset(passive);
	return dat_ep_reset(active);
}

static DAT_RETURN accepted_over(void)
{
	DAT_RETURN ret = accepted();

	if (ret == DAT_SUCCESS)
		ret = disconnect();
	return ret ?: both_over();
}

static DAT_RETURN after_reset(void)
{
	return dat_ep_reset(passive);
}

/* ---- the sweep ---- */

static const struct {
	const char *name;
	DAT_RETURN (*before)(void);	/* makes what it works on, once for each try */
	DAT_RETURN (*call)(void);
	DAT_RETURN (*after)(void);	/* undoes it, when it has succeeded */
	DAT_RETURN (*undo)(void);	/* of before, when it has not */
	bool must;			/* it has no reason to fail */
	DAT_RETURN_TYPE also;		/* TCP/IP, without memory for a port or a route */
} sweeps[] = {
	{ "dat_ia_openv", NULL, ia_open, ia_close },
	{ "dat_ia_close", ia_open, ia_close, NULL, NULL, true },
	{ "dat_ia_query", NULL, ia_attributes },
	{ "dat_ia_memtype_hint", NULL, ia_hint },
	{ "dat_ia_reserved_lmr", NULL, ia_reserved },
	{ "dat_registry_list_providers", NULL, ia_list },
	{ "dat_pz_create", NULL, pz_create, pz_free },
	{ "dat_pz_free", pz_create, pz_free, NULL, NULL, true },
	{ "dat_evd_kcreate, SOFTWARE", NULL, evd_soft, evd_free },
	{ "dat_evd_kcreate, DTO", NULL, evd_dto, evd_free },
	{ "dat_evd_kcreate, all", NULL, evd_all, evd_free },
	{ "dat_evd_resize, SOFTWARE", evd_soft, evd_grow, evd_free, evd_free },
	{ "dat_evd_resize, DTO", evd_dto, evd_grow, evd_free, evd_free },
	{ "dat_evd_modify_upcall, MANY", evd_all, evd_many, evd_free, evd_free, true },
	{ "dat_evd_modify_upcall, TEARDOWN", evd_all, evd_teardown, evd_free, evd_free, true },
	{ "dat_evd_free", evd_all, evd_free, NULL, NULL, true },
	{ "dat_ep_create", NULL, ep_create, ep_free },
	{ "dat_ep_create, bare", NULL, ep_create_bare, ep_free },
	{ "dat_ep_create_with_srq", NULL, ep_create_srq, ep_free },
	{ "dat_ep_modify", ep_create, ep_grow, ep_free, ep_free },
	{ "dat_ep_reset", ep_create, ep_reset, ep_free, ep_free },
	{ "dat_ep_free", ep_create, ep_free, NULL, NULL, true },
	{ "dat_srq_create", NULL, srq_create, srq_free },
	{ "dat_srq_resize", srq_create, srq_grow, srq_free, srq_free },
	{ "dat_srq_free", srq_create, srq_free, NULL, NULL, true },
	{ "dat_lmr_kcreate, VIRTUAL", NULL, lmr_virtual, lmr_free },
	{ "dat_lmr_kcreate, PHYSICAL", NULL, lmr_physical, lmr_free },
	{ "dat_lmr_kcreate, LMR", NULL, lmr_of_lmr, lmr_free },
	{ "dat_lmr_allocate", NULL, lmr_allocate, lmr_free },
	{ "dat_lmr_free", lmr_virtual, lmr_free, NULL, NULL, true },
	{ "dat_rmr_create", NULL, rmr_create, rmr_free },
	{ "dat_rmr_free", rmr_create, rmr_free, NULL, NULL, true },
	{ "dat_psp_create", NULL, psp_create, psp_free, NULL, false, DAT_CONN_QUAL_IN_USE },
	{ "dat_psp_create_any", NULL, psp_any, psp_free, NULL, false, DAT_CONN_QUAL_UNAVAILABLE },
	{ "dat_psp_free", psp_any, psp_free, NULL, NULL, true },
	{ "dat_rsp_create", NULL, rsp_create, rsp_free, NULL, false, DAT_CONN_QUAL_IN_USE },
	{ "dat_rsp_free", rsp_create, rsp_free, NULL, NULL, true },
	{ "dat_csp_create", NULL, csp_create, csp_free, NULL, false, DAT_PORT_IN_USE },
	{ "dat_csp_free", csp_create, csp_free, NULL, NULL, true },
	{ "dat_ep_connect", before_connect, connect, after_connect, NULL, false,
	  DAT_INVALID_ADDRESS },
	{ "dat_cr_handoff", request, handoff, after_handoff, after_reject },
	{ "dat_cr_reject", request, reject, after_reject, NULL, true },
	{ "dat_cr_accept", request, accept, after_accept, after_reject },
	{ "dat_ep_disconnect", accepted, disconnect, after_disconnect, NULL, true },
	{ "dat_ep_reset, after a connection", accepted_over, reset_active, after_reset,
	  after_disconnect },
};

#ifdef CONFIG_FAULT_INJECTION
static void fail_from(u32 n)
{
	WRITE_ONCE(current->fail_nth, n);
}

static bool fail_reached(void)
{
	bool reached = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	return reached;
}
#else
static void fail_from(u32 n)
{
}

static bool fail_reached(void)
{
	return false;
}
#endif

static void sweep_one(int i)
{
	u32 n, no = 0;
	bool reached;
	DAT_RETURN ret;

	now = sweeps[i].name;
	for (n = 1; n < MOST && faults < 20; n++) {
		if (sweeps[i].before && check("setting up", sweeps[i].before()))
			return;
		fail_from(n);
		ret = sweeps[i].call();
		reached = fail_reached();
		if (ret == DAT_SUCCESS) {
			if (sweeps[i].after)
				check("undoing", sweeps[i].after());
		} else {
			no++;
			if (sweeps[i].must || !reached ||
			    (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES &&
			     DAT_GET_TYPE(ret) != sweeps[i].also))
				fail("allocation %u: %s %s", n, major_name(ret), minor_name(ret));
			if (sweeps[i].call == accept || sweeps[i].call == handoff)
				reject();
			if (sweeps[i].undo)
				check("undoing what was set up", sweeps[i].undo());
		}
		if (!reached)
			break;
	}
	if (n == MOST)
		fail("it never ends");
	total += n - 1;
	refused += no;
	pr_info("%s: %u allocations, refused %u times\n", now, n - 1, no);
}

static int __init kdf_init(void)
{
	u32 round;
	int i, err;

	if (!ia) {
		pr_err("ia= is missing\n");
		return -EINVAL;
	}
	err = ground_open();
	if (!err) {
		lmr_virtual();
		the_lmr = out;
	}
	for (round = 0; round < rounds && !err && !faults; round++) {
		for (i = 0; i < ARRAY_SIZE(sweeps); i++)
			sweep_one(i);
	}
	if (the_ia)
		dat_ia_close(the_ia, DAT_CLOSE_ABRUPT_FLAG);
	kfree(mem);
	pr_info("%s calls=%zu allocations=%u refused=%u\n",
		err || faults || !total ? "FAIL" : "PASS", ARRAY_SIZE(sweeps), total, refused);
	return err ?: faults || !total ? -EIO : 0;
}

static void __exit kdf_exit(void)
{
}

module_init(kdf_init);
module_exit(kdf_exit);
MODULE_DESCRIPTION("kDAPL test: every call with each of its allocations failing");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
