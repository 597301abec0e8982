// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdold - a consumer of DAT 1.2, as they were written then: README.md.
 *
 * All events go to one EVD, whose upcall puts them into a queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/kfifo.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <dat/kdat.h>

#include "peer.h"

/* As clients of the reference implementation do: not a word of warning. */
#define DAT_ERROR(Type, SubType) ((DAT_RETURN)(DAT_CLASS_ERROR | Type | SubType))

#define PORT	4711		/* kdping's */
#define OWN	4712
#define SIZE	8192
#define LONG	(20 * HZ)

static char *test, *ia, *address;

module_param(test, charp, 0444);
MODULE_PARM_DESC(test, "what to do: see README.md");
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "of kdping, and of this adapter");

/* The layouts of 1.2, which make no difference to a source, but to a dump of memory. */
static_assert(sizeof(DAT_LMR_TRIPLET) == 24 && sizeof(DAT_RMR_TRIPLET) == 24);
static_assert(DAT_VERSION_MAJOR == 1 && DAT_VERSION_MINOR == 2);
static_assert(DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR == 0x4 && DAT_EP_FIELD_SRQ_HANDLE == 0x400);

static DAT_IA_HANDLE kdo_ia;
static DAT_EVD_HANDLE kdo_async, kdo_evd;
static DAT_PZ_HANDLE kdo_pz;

static DEFINE_KFIFO(kdo_events, DAT_EVENT, 64);
static DEFINE_SPINLOCK(kdo_lock);		/* the queue */
static DECLARE_WAIT_QUEUE_HEAD(kdo_wait);
static bool kdo_wrong;

/* A condition that does not hold fails the test, which goes on. */
#define check(condition) kdo_check(condition, #condition, __LINE__)

static bool kdo_check(bool holds, const char *what, int line)
{
	if (!holds) {
		pr_err("%s, line %d: not so: %s\n", test, line, what);
		kdo_wrong = true;
	}
	return holds;
}

/* What a call returns; 0 for success. */
#define ARG(n)	(DAT_INVALID_PARAMETER | (DAT_INVALID_ARG1 + (n) - 1))
#define expect(ret, call) kdo_expect(ret, call, #call, __LINE__)

static bool kdo_expect(u32 want, DAT_RETURN ret, const char *what, int line)
{
	const char *major = "unknown", *minor = "";

	if (ret == (want ? DAT_ERROR(want, 0) : DAT_SUCCESS))
		return true;
	dat_strerror(ret, &major, &minor);
	pr_err("%s, line %d: %s %s (0x%08x), not 0x%08x: %s\n", test, line, major, minor, ret,
	       want, what);
	kdo_wrong = true;
	return false;
}

static void kdo_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	check(instance == &kdo_events);
	kfifo_in_spinlocked(&kdo_events, event, 1, &kdo_lock);
	wake_up(&kdo_wait);
}

/* The next event, if it is this one. */
static bool kdo_next(DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	if (!check(wait_event_timeout(kdo_wait, !kfifo_is_empty(&kdo_events), LONG)))
		return false;
	if (!check(kfifo_out_spinlocked(&kdo_events, event, 1, &kdo_lock)))
		return false;
	if (event->event_number == number)
		return check(event->evd_handle == kdo_evd);
	pr_err("%s: event 0x%x, not 0x%x\n", test, event->event_number, number);
	kdo_wrong = true;
	return false;
}

/* The completion of something with this cookie, all well. */
static bool kdo_completed(u64 cookie, DAT_VLEN length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	if (!kdo_next(DAT_DTO_COMPLETION_EVENT, &event))
		return false;
	dto = &event.event_data.dto_completion_event_data;
	return check(dto->user_cookie.as_64 == cookie && dto->status == DAT_DTO_SUCCESS &&
		     dto->transfered_length == length);
}

struct kdo_mem {
	u8 *addr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rmr_context;
};

static bool kdo_mem_create(struct kdo_mem *mem, int rights)
{
	DAT_REGION_DESCRIPTION region = {};
	DAT_VADDR start;
	DAT_VLEN length;

	mem->addr = kzalloc(SIZE, GFP_KERNEL);
	if (!mem->addr)
		return check(false);
	region.for_va = mem->addr;
	return expect(0, dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, kdo_pz,
					 rights, DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr,
					 &mem->context, &mem->rmr_context, &length, &start));
}

static void kdo_mem_destroy(struct kdo_mem *mem)
{
	if (mem->lmr)
		expect(0, dat_lmr_free(mem->lmr));
	kfree(mem->addr);
}

static DAT_LMR_TRIPLET kdo_segment(const struct kdo_mem *mem, u32 offset, u64 length)
{
	return (DAT_LMR_TRIPLET){
		.lmr_context = mem->context,
		.pad = 0xdeadbeef,
		.virtual_address = (uintptr_t)mem->addr + offset,
		.segment_length = length,
	};
}

static DAT_DTO_COOKIE kdo_cookie(u64 n)
{
	return (DAT_DTO_COOKIE){ .as_64 = n };
}

static bool kdo_ep_create(DAT_EP_HANDLE *ep)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = SIZE, .max_rdma_size = SIZE,
		.max_recv_dtos = 4, .max_recv_iov = 2,
		.max_request_dtos = 4, .max_request_iov = 2,
		.max_rdma_read_in = 1, .max_rdma_read_out = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return expect(0, dat_ep_create(kdo_ia, kdo_pz, kdo_evd, kdo_evd, kdo_evd, &attr, ep));
}

/* ---- the tests ---- */

static void test_version(void)
{
	static DAT_PROVIDER_INFO info[8];
	DAT_PROVIDER_INFO *list[8];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE other = DAT_HANDLE_NULL;
	DAT_PROVIDER_ATTR *provider;
	DAT_IA_ATTR *attr;
	DAT_COUNT n, i;

	for (i = 0; i < 8; i++)
		list[i] = &info[i];
	if (expect(0, dat_registry_list_providers(8, &n, list)))
		for (i = 0; i < n; i++)
			check(info[i].dapl_version_major == 1 && info[i].dapl_version_minor == 2);
	expect(DAT_PROVIDER_NOT_FOUND | DAT_MAJOR_NOT_FOUND,
	       dat_ia_openv(ia, 8, &async, &other, 2, 0, DAT_TRUE));
	expect(DAT_PROVIDER_NOT_FOUND | DAT_MINOR_NOT_FOUND,
	       dat_ia_openv(ia, 8, &async, &other, 1, 3, DAT_TRUE));
	if (expect(0, dat_ia_openv(ia, 8, &async, &other, 1, 0, DAT_FALSE)))
		expect(0, dat_ia_close(other, DAT_CLOSE_DEFAULT));

	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	provider = kzalloc(sizeof(*provider), GFP_KERNEL);
	if (check(attr && provider)) {
		expect(0, dat_ia_query(kdo_ia, &async, DAT_IA_ALL, attr,
				       DAT_PROVIDER_FIELD_ALL, provider));
		check(async == kdo_async && attr->max_message_size >= 1 << 20);
		check(!strcmp(attr->adapter_name, ia) && attr->max_mtu_size);
		check(attr->max_iov_segments_per_dto > 0 && attr->max_iov_segments_per_dto <= 32);
		check(provider->dapl_version_major == 1 && provider->dapl_version_minor == 2);
		check(provider->num_provider_specific_attr >= 0 && provider->is_thread_safe);
		expect(ARG(3), dat_ia_query(kdo_ia, NULL, DAT_IA_FIELD_ALL + 1, attr, 0, NULL));
		expect(ARG(5), dat_ia_query(kdo_ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1,
					    provider));
		expect(ARG(4), dat_ia_query(kdo_ia, NULL, 1, NULL, 0, NULL));
		expect(0, dat_ia_query(kdo_ia, NULL, 0, NULL, 0, NULL));
	}
	kfree(provider);
	kfree(attr);
}

static void test_memory(void)
{
	const int rights = DAT_MEM_PRIV_READ_FLAG | DAT_MEM_PRIV_WRITE_FLAG;
	struct page *page = alloc_page(GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = {};
	DAT_LMR_HANDLE shared = NULL, pages = NULL;
	struct kdo_mem mem = {};
	DAT_LMR_PARAM param = {};
	DAT_LMR_TRIPLET segment;
	DAT_PADDR list[1];

	if (!check(page) || !kdo_mem_create(&mem, rights))
		goto out;
	expect(0, dat_lmr_query(mem.lmr, DAT_LMR_FIELD_ALL, &param));
	check(param.ia_handle == kdo_ia && param.pz_handle == kdo_pz);
	check(param.mem_type == DAT_MEM_TYPE_VIRTUAL && param.region_desc.for_va == mem.addr);
	check(param.length == SIZE && param.mem_priv == rights);
	check(param.lmr_context == mem.context && param.rmr_context == mem.rmr_context);
	check(param.registered_size >= SIZE);
	expect(ARG(2), dat_lmr_query(mem.lmr, DAT_LMR_FIELD_ALL + 1, &param));
	expect(0, dat_lmr_query(mem.lmr, 0, NULL));

	region.for_lmr_handle = mem.lmr;
	expect(0, dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_LMR, region, SIZE, kdo_pz, rights,
				  DAT_MEM_OPTIMIZE_DONT_CARE, &shared, NULL, NULL, NULL, NULL));
	if (shared && expect(0, dat_lmr_query(shared, DAT_LMR_FIELD_ALL, &param)))
		check(param.region_desc.for_lmr_handle == mem.lmr);
	list[0] = page_to_phys(page);
	region.for_array = list;
	expect(0, dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_PHYSICAL, region, 1, kdo_pz, rights,
				  DAT_MEM_OPTIMIZE_DONT_CARE, &pages, NULL, NULL, NULL, NULL));

	region.for_va = mem.addr;
	expect(ARG(2), dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 1, kdo_pz,
				       rights, DAT_MEM_OPTIMIZE_DONT_CARE, &shared, NULL, NULL,
				       NULL, NULL));
	expect(ARG(6), dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, kdo_pz,
				       0x1000, DAT_MEM_OPTIMIZE_DONT_CARE, &shared, NULL, NULL,
				       NULL, NULL));
	expect(ARG(7), dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, kdo_pz, rights,
				       0x1000, &shared, NULL, NULL, NULL, NULL));
	expect(ARG(8), dat_lmr_kcreate(kdo_ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, kdo_pz, rights,
				       DAT_MEM_OPTIMIZE_DONT_CARE, NULL, NULL, NULL, NULL, NULL));

	segment = kdo_segment(&mem, 0, SIZE);
	expect(0, dat_lmr_sync_rdma_read(kdo_ia, &segment, 1));
	expect(0, dat_lmr_sync_rdma_write(kdo_ia, &segment, 1));
	segment.segment_length = (1ULL << 32) + 1;
	expect(ARG(2), dat_lmr_sync_rdma_read(kdo_ia, &segment, 1));
	expect(ARG(2), dat_lmr_sync_rdma_write(kdo_ia, NULL, 1));
out:
	if (pages)
		expect(0, dat_lmr_free(pages));
	if (shared)
		expect(0, dat_lmr_free(shared));
	kdo_mem_destroy(&mem);
	if (page)
		__free_page(page);
}

static void test_masks(void)
{
	static DAT_LMR_TRIPLET empty[33];
	static DAT_IA_ATTR limits;
	DAT_EP_HANDLE ep = NULL, none;
	DAT_EP_PARAM param = {};
	DAT_EP_ATTR attr;
	int bit, most;

	if (!kdo_ep_create(&ep))
		return;
	for (bit = 0; bit < 31; bit++)
		if (bit != 11)
			expect(0, dat_ep_query(ep, 1ULL << bit, &param));
	expect(ARG(2), dat_ep_query(ep, 1 << 11, &param));
	expect(ARG(2), dat_ep_query(ep, 1ULL << 31, &param));
	expect(0, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	check(param.ia_handle == kdo_ia && param.pz_handle == kdo_pz && !param.srq_handle);
	check(param.recv_evd_handle == kdo_evd && param.connect_evd_handle == kdo_evd);
	check(param.ep_state == DAT_EP_STATE_UNCONNECTED);
	check(param.ep_attr.max_message_size == SIZE && param.ep_attr.max_recv_iov == 2);

	/* each bit is that of its own member */
	param.pz_handle = NULL;
	param.connect_evd_handle = NULL;
	expect(0, dat_ep_modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	expect(0, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	check(!param.connect_evd_handle && param.pz_handle == kdo_pz);
	param.ep_attr.max_message_size = 1ULL << 32;
	expect(ARG(3), dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param));
	expect(ARG(2), dat_ep_modify(ep, 1 << 11, &param));
	expect(ARG(2), dat_ep_modify(ep, DAT_EP_FIELD_SRQ_HANDLE, &param));
	expect(ARG(3), dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, NULL));
	expect(0, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	attr = param.ep_attr;
	attr.max_rdma_size = 1ULL << 32;
	expect(ARG(6), dat_ep_create(kdo_ia, kdo_pz, kdo_evd, kdo_evd, kdo_evd, &attr, &none));
	expect(ARG(7), dat_ep_create_with_srq(kdo_ia, kdo_pz, kdo_evd, kdo_evd, kdo_evd,
					      DAT_HANDLE_NULL, &attr, &none));
	/* as many segments as there may be, at most 32, and not one more */
	expect(0, dat_ia_query(kdo_ia, NULL, DAT_IA_ALL, &limits, 0, NULL));
	most = clamp(limits.max_iov_segments_per_dto, 1, 32);
	param.ep_attr.max_recv_iov = most;
	expect(0, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &param));
	expect(0, dat_ep_post_recv(ep, most, empty, kdo_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	expect(ARG(2), dat_ep_post_recv(ep, most + 1, empty, kdo_cookie(1),
					DAT_COMPLETION_DEFAULT_FLAG));
	expect(0, dat_ep_free(ep));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP,
	       dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
}

static void test_events(void)
{
	DAT_UPCALL_OBJECT upcall = { &kdo_events, kdo_upcall };
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_PARAM param = {};

	event.event_data.software_event_data.pointer = &kdo_wrong;
	expect(0, dat_evd_post_se(kdo_evd, &event));
	memset(&event, 0, sizeof(event));
	if (kdo_next(DAT_SOFTWARE_EVENT, &event))
		check(event.event_data.software_event_data.pointer == &kdo_wrong);
	expect(0, dat_evd_query(kdo_evd, DAT_EVD_FIELD_ALL, &param));
	check(param.upcall.upcall_func == kdo_upcall && param.ia_handle == kdo_ia);
	check(param.upcall.instance_data == &kdo_events);

	/* three arguments; what comes meanwhile is taken by hand */
	expect(0, dat_evd_modify_upcall(kdo_evd, DAT_UPCALL_DISABLE, NULL));
	expect(0, dat_evd_post_se(kdo_evd, &event));
	memset(&event, 0, sizeof(event));
	expect(0, dat_evd_dequeue(kdo_evd, &event));
	check(event.event_number == DAT_SOFTWARE_EVENT && event.evd_handle == kdo_evd);
	check(event.event_data.software_event_data.pointer == &kdo_wrong);
	expect(DAT_QUEUE_EMPTY, dat_evd_dequeue(kdo_evd, &event));
	expect(0, dat_evd_modify_upcall(kdo_evd, DAT_UPCALL_MANY, &upcall));
	expect(0, dat_evd_post_se(kdo_evd, &event));
	kdo_next(DAT_SOFTWARE_EVENT, &event);
	expect(0, dat_evd_modify_upcall(kdo_evd, DAT_UPCALL_TEARDOWN, NULL));

	expect(ARG(2), dat_evd_post_se(kdo_evd, NULL));
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	expect(ARG(2), dat_evd_post_se(kdo_evd, &event));
	expect(DAT_QUEUE_EMPTY, dat_evd_dequeue(kdo_async, &event));
}

/* What an upcall of this object was told. */
struct kdo_note {
	DAT_EVD_HANDLE evd;
	atomic_t calls, others;
	bool torn_down;
};

static void kdo_note_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdo_note *note = instance;

	check(event->event_number == DAT_SOFTWARE_EVENT || event->evd_handle == note->evd);
	if (note->torn_down)	/* it would wait for itself */
		expect(DAT_INVALID_STATE | DAT_INVALID_STATE_EVD_IN_USE,
		       dat_evd_modify_upcall(note->evd, DAT_UPCALL_TEARDOWN, NULL));
	/* last: who waits for it may free the EVD */
	atomic_inc(event->event_data.software_event_data.pointer == note ? &note->calls :
		   &note->others);
	wake_up(&kdo_wait);
}

static bool kdo_noted(struct kdo_note *note, int calls)
{
	return check(wait_event_timeout(kdo_wait, atomic_read(&note->calls) == calls, LONG));
}

static bool kdo_tell(struct kdo_note *note)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = note;
	return expect(0, dat_evd_post_se(note->evd, &event));
}

static bool kdo_note_evd(DAT_IA_HANDLE on, struct kdo_note *note, DAT_EVD_HANDLE *evd)
{
	const DAT_UPCALL_OBJECT upcall = { note, kdo_note_upcall };

	return expect(0, dat_evd_kcreate(on, 8, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					 DAT_EVD_SOFTWARE_FLAG, evd));
}

/* One EVD and some objects, in turn. */
static void kdo_objects(void)
{
	static struct kdo_note notes[4];
	const DAT_UPCALL_OBJECT none = { notes, NULL };
	DAT_UPCALL_OBJECT upcall = { NULL, kdo_note_upcall };
	DAT_EVD_PARAM param = {};
	DAT_EVD_HANDLE evd;
	int i, n;

	memset(notes, 0, sizeof(notes));
	if (!kdo_note_evd(kdo_ia, &notes[0], &evd))
		return;
	for (i = 0; i < 400; i++) {
		n = i % ARRAY_SIZE(notes);
		upcall.instance_data = &notes[n];
		notes[n].evd = evd;
		expect(0, dat_evd_modify_upcall(evd, i & 4 ? DAT_UPCALL_MANY :
						DAT_UPCALL_SINGLE_INSTANCE, &upcall));
		if (!kdo_tell(&notes[n]) || !kdo_noted(&notes[n], i / ARRAY_SIZE(notes) + 1))
			break;
		if (i & 8)
			continue;
		/* none, and the same again */
		expect(0, dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, &none));
		expect(0, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
		check(!param.upcall.upcall_func && param.upcall.instance_data == notes);
		expect(ARG(3), dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, NULL));
		expect(ARG(3), dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, &none));
		expect(ARG(2), dat_evd_modify_upcall(evd, 99, &upcall));
	}
	for (n = 0; n < ARRAY_SIZE(notes); n++)
		check(!atomic_read(&notes[n].others));
	expect(0, dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, &upcall));
	notes[3].torn_down = true;
	if (kdo_tell(&notes[3]))
		kdo_noted(&notes[3], 400 / ARRAY_SIZE(notes) + 1);
	expect(0, dat_evd_free(evd));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1,
	       dat_evd_modify_upcall(evd, DAT_UPCALL_MANY, &upcall));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1, dat_evd_query(evd, 0, NULL));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE1,
	       dat_evd_modify_upcall(DAT_HANDLE_NULL, DAT_UPCALL_MANY, &upcall));
}

static void test_upcalls(void)
{
	struct kdo_note *notes = kcalloc(200, sizeof(*notes), GFP_KERNEL);
	DAT_UPCALL_OBJECT upcall = { notes, kdo_note_upcall };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_EVD_PARAM param = {};
	DAT_IA_HANDLE other;
	int i, round;

	if (!check(notes))
		return;
	kdo_objects();
	/* half of them freed, the others left to the close */
	for (round = 0; round < 5 && !kdo_wrong; round++) {
		async = DAT_HANDLE_NULL;
		if (!expect(0, dat_ia_open(ia, 8, &async, &other)))
			break;
		/* the one that came with it, too */
		expect(0, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
		check(!param.upcall.upcall_func);
		expect(0, dat_evd_modify_upcall(async, DAT_UPCALL_SINGLE_INSTANCE, &upcall));
		expect(0, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
		check(param.upcall.upcall_func == kdo_note_upcall &&
		      param.upcall.instance_data == notes);
		for (i = 0; i < 200; i++) {
			atomic_set(&notes[i].calls, 0);
			if (!kdo_note_evd(other, &notes[i], &notes[i].evd) || !kdo_tell(&notes[i]))
				break;
		}
		while (i--) {
			kdo_noted(&notes[i], 1);
			check(!atomic_read(&notes[i].others));
			if (i & 1)
				expect(0, dat_evd_free(notes[i].evd));
			else	/* that nobody waits for */
				kdo_tell(&notes[i]);
		}
		expect(0, dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	}
	/* what does not become an EVD */
	for (i = 0; i < 200; i++) {
		expect(ARG(2), dat_evd_kcreate(kdo_ia, 0, DAT_UPCALL_MANY, &upcall,
					       DAT_EVD_SOFTWARE_FLAG, &async));
		expect(ARG(6), dat_evd_kcreate(kdo_ia, 8, DAT_UPCALL_MANY, &upcall,
					       DAT_EVD_SOFTWARE_FLAG, NULL));
	}
	upcall.upcall_func = NULL;
	expect(ARG(4), dat_evd_kcreate(kdo_ia, 8, DAT_UPCALL_MANY, &upcall,
				       DAT_EVD_SOFTWARE_FLAG, &async));
	kfree(notes);
}

static bool kdo_address(struct sockaddr_storage *addr)
{
	return check(!inet_pton_with_scope(&init_net, AF_UNSPEC, address, NULL, addr));
}

static bool kdo_connect(DAT_EP_HANDLE ep, u16 port)
{
	struct sockaddr_storage addr;

	return kdo_address(&addr) &&
	       expect(0, dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&addr, port, 10 * USEC_PER_SEC, 0,
					NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* The end of a connection: flushes, and DISCONNECTED at each of its ends. */
static void kdo_ended(int ends)
{
	DAT_EVENT event;

	while (ends) {
		if (!check(wait_event_timeout(kdo_wait, !kfifo_is_empty(&kdo_events), LONG)) ||
		    !check(kfifo_out_spinlocked(&kdo_events, &event, 1, &kdo_lock)))
			return;
		if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
			ends--;
		else
			check(event.event_number == DAT_DTO_COMPLETION_EVENT &&
			      event.event_data.dto_completion_event_data.status ==
			      DAT_DTO_ERR_FLUSHED);
	}
}

static void test_accept(void)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *arrival;
	DAT_EP_HANDLE here = NULL, there = NULL;
	struct kdo_mem in = {}, out = {};
	DAT_PSP_HANDLE psp = NULL;
	struct sockaddr_storage addr;
	DAT_LMR_TRIPLET iov[2];
	DAT_EVENT event;

	if (!kdo_mem_create(&in, DAT_MEM_PRIV_LOCAL_WRITE_FLAG) ||
	    !kdo_mem_create(&out, DAT_MEM_PRIV_LOCAL_READ_FLAG) ||
	    !kdo_ep_create(&here) || !kdo_ep_create(&there) ||
	    !expect(0, dat_psp_create(kdo_ia, OWN, kdo_evd, DAT_PSP_CONSUMER_FLAG, &psp)))
		goto out;

	/* no, thanks: in 1.2 without a word */
	if (!kdo_connect(here, OWN) || !kdo_next(DAT_CONNECTION_REQUEST_EVENT, &event))
		goto out;
	arrival = &event.event_data.cr_arrival_event_data;
	check(arrival->sp_handle.psp_handle == psp && arrival->conn_qual == OWN);
	expect(0, dat_cr_reject(arrival->cr_handle));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR, dat_cr_reject(arrival->cr_handle));
	if (!kdo_next(DAT_CONNECTION_EVENT_PEER_REJECTED, &event))
		goto out;
	check(event.event_data.connect_event_data.ep_handle == here);

	/* nor does a peer of 2.0 hear one */
	if (!kdo_address(&addr) || !check(kdo_peer_connect(kdo_ia, kdo_pz, &addr, OWN)))
		goto out;
	if (kdo_next(DAT_CONNECTION_REQUEST_EVENT, &event))
		expect(0, dat_cr_reject(arrival->cr_handle));
	check(kdo_peer_refused());

	expect(0, dat_ep_reset(here));
	iov[0] = kdo_segment(&in, 0, 100);
	iov[1] = kdo_segment(&in, 1000, 3000);
	expect(0, dat_ep_post_recv(there, 2, iov, kdo_cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	if (!kdo_connect(here, OWN) || !kdo_next(DAT_CONNECTION_REQUEST_EVENT, &event))
		goto out;
	expect(0, dat_cr_accept(arrival->cr_handle, there, 0, NULL));
	if (!kdo_next(DAT_CONNECTION_EVENT_ESTABLISHED, &event) ||
	    !kdo_next(DAT_CONNECTION_EVENT_ESTABLISHED, &event))
		goto out;
	memset(out.addr, 'k', 2000);
	iov[0] = kdo_segment(&out, 0, 1500);
	iov[1] = kdo_segment(&out, 1500, 500);
	expect(0, dat_ep_post_send(here, 2, iov, kdo_cookie(2), DAT_COMPLETION_SUPPRESS_FLAG));
	if (kdo_completed(1, 2000))
		check(!memcmp(in.addr, out.addr, 100) &&
		      !memcmp(in.addr + 1000, out.addr + 100, 1900) && !in.addr[2900]);
	expect(0, dat_ep_disconnect(here, DAT_CLOSE_GRACEFUL_FLAG));
	kdo_ended(2);
out:
	if (psp)
		expect(0, dat_psp_free(psp));
	if (there)
		expect(0, dat_ep_free(there));
	if (here)
		expect(0, dat_ep_free(here));
	kdo_mem_destroy(&out);
	kdo_mem_destroy(&in);
}

/* A message of kdping. */
struct kdo_msg {
	__le32 length;
	__le32 rmr_context;
	__le64 address;
	__le32 crc;
	__le32 pad;
};

static bool kdo_say(DAT_EP_HANDLE ep, struct kdo_mem *out, u32 crc)
{
	struct kdo_msg *msg = (struct kdo_msg *)out->addr;
	DAT_LMR_TRIPLET iov = kdo_segment(out, 0, sizeof(*msg));

	memset(msg, 0, sizeof(*msg));
	msg->length = cpu_to_le32(SIZE);
	msg->crc = cpu_to_le32(crc);
	return expect(0, dat_ep_post_send(ep, 1, &iov, kdo_cookie(10),
					  DAT_COMPLETION_SUPPRESS_FLAG));
}

static bool kdo_listen(DAT_EP_HANDLE ep, struct kdo_mem *in)
{
	DAT_LMR_TRIPLET iov = kdo_segment(in, 0, sizeof(struct kdo_msg));

	return expect(0, dat_ep_post_recv(ep, 1, &iov, kdo_cookie(11), 0));
}

/* What a post of 1.2 may have wrong that one of 2.0 cannot. */
static void kdo_bad_posts(DAT_EP_HANDLE ep, const struct kdo_mem *mem)
{
	DAT_RMR_TRIPLET remote = { .segment_length = 1ULL << 32 };
	DAT_LMR_TRIPLET iov[33];
	int i;

	for (i = 0; i < 33; i++)
		iov[i] = kdo_segment(mem, i, 1);
	expect(ARG(2), dat_ep_post_send(ep, 33, iov, kdo_cookie(0), 0));
	expect(ARG(2), dat_ep_post_send(ep, 3, iov, kdo_cookie(0), 0));
	expect(ARG(2), dat_ep_post_send(ep, -1, iov, kdo_cookie(0), 0));
	expect(ARG(3), dat_ep_post_send(ep, 1, NULL, kdo_cookie(0), 0));
	expect(ARG(5), dat_ep_post_rdma_write(ep, 1, iov, kdo_cookie(0), &remote, 0));
	expect(ARG(5), dat_ep_post_rdma_read(ep, 1, iov, kdo_cookie(0), NULL, 0));
	iov[1].segment_length = (1ULL << 32) + 1;
	expect(ARG(3), dat_ep_post_send(ep, 2, iov, kdo_cookie(0), 0));
	expect(ARG(3), dat_ep_post_recv(ep, 2, iov, kdo_cookie(0), 0));
	expect(ARG(3), dat_srq_post_recv(DAT_HANDLE_NULL, 2, iov, kdo_cookie(0)));
	expect(DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP,
	       dat_ep_post_send((DAT_EP_HANDLE)0x1234, 1, iov, kdo_cookie(0), 0));
}

/* A window over part of the memory: the LMR is found by its context. */
static void kdo_window(DAT_EP_HANDLE ep, const struct kdo_mem *mem)
{
	DAT_LMR_TRIPLET part = kdo_segment(mem, 4096, 4096);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind;
	DAT_RMR_PARAM param = {};
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	if (!expect(0, dat_rmr_create(kdo_pz, &rmr)))
		return;
	bind = &event.event_data.rmr_completion_event_data;
	expect(0, dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, ep, kdo_cookie(20),
			       DAT_COMPLETION_DEFAULT_FLAG, &context));
	if (kdo_next(DAT_RMR_BIND_COMPLETION_EVENT, &event))
		check(bind->rmr_handle == rmr && bind->user_cookie.as_64 == 20 &&
		      bind->status == DAT_RMR_BIND_SUCCESS);
	expect(0, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	check(param.rmr_context == context && param.lmr_triplet.segment_length == 4096);
	check(param.lmr_triplet.lmr_context == mem->context && !param.lmr_triplet.pad);
	expect(ARG(2), dat_rmr_query(rmr, DAT_RMR_FIELD_ALL + 1, &param));

	part.lmr_context ^= 0x100;
	expect(ARG(2), dat_rmr_bind(rmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, ep, kdo_cookie(21),
				    0, &context));
	part.segment_length = 1ULL << 32;
	expect(ARG(2), dat_rmr_bind(rmr, &part, 0, ep, kdo_cookie(21), 0, &context));
	expect(ARG(2), dat_rmr_bind(rmr, NULL, 0, ep, kdo_cookie(21), 0, &context));
	part.segment_length = 0;
	expect(ARG(3), dat_rmr_bind(rmr, &part, 0x1000, ep, kdo_cookie(21), 0, &context));
	expect(ARG(7), dat_rmr_bind(rmr, &part, 0, ep, kdo_cookie(21), 0, NULL));
	expect(0, dat_rmr_bind(rmr, &part, 0, ep, kdo_cookie(22), 0, &context));
	if (kdo_next(DAT_RMR_BIND_COMPLETION_EVENT, &event))
		check(bind->user_cookie.as_64 == 22 && bind->status == DAT_RMR_BIND_SUCCESS);
	expect(0, dat_rmr_free(rmr));
}

static void kdo_transfers(DAT_EP_HANDLE ep, struct kdo_mem *in, struct kdo_mem *out,
			  struct kdo_mem *buf, struct kdo_mem *back)
{
	const struct kdo_msg *msg = (struct kdo_msg *)in->addr;
	DAT_LMR_TRIPLET from, to;
	DAT_RMR_TRIPLET remote;
	u32 crc;
	int i;

	if (!kdo_say(ep, out, 0) || !kdo_completed(11, sizeof(*msg)))
		return;
	remote = (DAT_RMR_TRIPLET){
		.rmr_context = le32_to_cpu(msg->rmr_context),
		.pad = 0xdeadbeef,
		.target_address = le64_to_cpu(msg->address),
		.segment_length = le32_to_cpu(msg->length),
	};
	check(remote.segment_length == SIZE);
	for (i = 0; i < SIZE; i++)
		buf->addr[i] = i * 2654435761u >> 13;
	crc = crc32_le(~0, buf->addr, SIZE);
	from = kdo_segment(buf, 0, SIZE);
	to = kdo_segment(back, 0, SIZE);
	expect(0, dat_ep_post_rdma_write(ep, 1, &from, kdo_cookie(12), &remote, 0));
	if (!kdo_completed(12, SIZE))
		return;
	expect(0, dat_ep_post_rdma_read(ep, 1, &to, kdo_cookie(13), &remote, 0));
	if (!kdo_completed(13, SIZE))
		return;
	check(!memcmp(buf->addr, back->addr, SIZE));
	kdo_bad_posts(ep, buf);
	kdo_window(ep, back);
	if (kdo_listen(ep, in) && kdo_say(ep, out, crc) && kdo_completed(11, sizeof(*msg)))
		check(le32_to_cpu(msg->crc) == crc);
}

static void test_ping(void)
{
	struct kdo_mem in = {}, out = {}, buf = {}, back = {};
	DAT_EP_HANDLE ep = NULL;
	DAT_EP_PARAM param = {};
	DAT_EVENT event;

	if (!kdo_mem_create(&in, DAT_MEM_PRIV_LOCAL_WRITE_FLAG) ||
	    !kdo_mem_create(&out, DAT_MEM_PRIV_LOCAL_READ_FLAG) ||
	    !kdo_mem_create(&buf, DAT_MEM_PRIV_LOCAL_READ_FLAG) ||
	    /* iWARP answers a Read with a Write; a window to read needs LOCAL_READ */
	    !kdo_mem_create(&back, DAT_MEM_PRIV_ALL_FLAG) ||
	    !kdo_ep_create(&ep) || !kdo_listen(ep, &in) || !kdo_connect(ep, PORT) ||
	    !kdo_next(DAT_CONNECTION_EVENT_ESTABLISHED, &event))
		goto out;
	expect(0, dat_ep_query(ep, DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_EP_STATE, &param));
	check(param.remote_port_qual == PORT && param.ep_state == DAT_EP_STATE_CONNECTED);
	kdo_transfers(ep, &in, &out, &buf, &back);
	expect(0, dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	kdo_ended(1);
out:
	if (ep)
		expect(0, dat_ep_free(ep));
	kdo_mem_destroy(&back);
	kdo_mem_destroy(&buf);
	kdo_mem_destroy(&out);
	kdo_mem_destroy(&in);
}

static const struct {
	const char *name;
	void (*func)(void);
} kdo_tests[] = {
	{ "version", test_version },
	{ "memory", test_memory },
	{ "masks", test_masks },
	{ "events", test_events },
	{ "upcalls", test_upcalls },
	{ "accept", test_accept },
	{ "ping", test_ping },
};

static int __init kdold_init(void)
{
	const DAT_UPCALL_OBJECT upcall = { &kdo_events, kdo_upcall };
	int i;

	for (i = 0; i < ARRAY_SIZE(kdo_tests); i++)
		if (test && !strcmp(kdo_tests[i].name, test))
			break;
	if (i == ARRAY_SIZE(kdo_tests) || !ia || !address)
		return -EINVAL;
	kdo_async = DAT_HANDLE_NULL;
	if (!expect(0, dat_ia_open(ia, 8, &kdo_async, &kdo_ia)))
		return -ENODEV;
	if (expect(0, dat_pz_create(kdo_ia, &kdo_pz)) &&
	    expect(0, dat_evd_kcreate(kdo_ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, &kdo_evd)))
		kdo_tests[i].func();
	if (kdo_evd)
		expect(0, dat_evd_free(kdo_evd));
	if (kdo_pz)
		expect(0, dat_pz_free(kdo_pz));
	/* nothing was forgotten */
	expect(0, dat_ia_close(kdo_ia, DAT_CLOSE_GRACEFUL_FLAG));
	return kdo_wrong ? -EPROTO : 0;
}

static void __exit kdold_exit(void)
{
}

module_init(kdold_init);
module_exit(kdold_exit);
MODULE_DESCRIPTION("kDAPL test: a consumer of DAT 1.2");
MODULE_LICENSE("Dual BSD/GPL");
