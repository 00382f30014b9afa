/* record.h — every kind of record that travels between the threads, in one list. */
#pragma once

enum slu_record_kind {
	/* io -> core */
	SLU_REC_OBJECT = 1, /* an object appeared, changed or went (control/feed.h) */
	SLU_REC_SYNCED,     /* the first list of a kind is complete */
	SLU_REC_WRITTEN,    /* a write to the cluster was answered */
	SLU_REC_ASK,        /* a person asks for something: cancel, drain, hold */
	SLU_REC_CONFIG,     /* a new configuration */
	SLU_REC_LEADER,     /* leadership won or lost */
	/* journal -> core */
	SLU_REC_JOURNAL, /* something became durable, or the state of the store changed */
	/* core -> io */
	SLU_REC_WRITE, /* write this to the cluster */
};
