/* reflect.h — grpc.reflection.v1 and v1alpha: tell clients like grpcurl which services exist. */
#pragma once
#include "rpc/grpc.h"
#include "wire/message.h"

struct slu_reflect;

/* New reflection service.  `files` describes the services of the server, NULL-ended, borrowed.  Returns NULL if
 * memory runs out. */
struct slu_reflect *slu_reflect_new(const struct slu_msg_file *const *files);
/* Put the methods onto a server.  0 or -ENOMEM. */
int slu_reflect_serve(struct slu_reflect *r, struct slu_grpc *g);
void slu_reflect_free(struct slu_reflect *r);
