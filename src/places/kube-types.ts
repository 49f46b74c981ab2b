/** Parts of Kubernetes objects that the Hub reads. */
import * as v from 'valibot';

const text = v.optional(v.string(), '');
const Metadata = v.object({
  name: v.string(),
  uid: v.string(),
  resourceVersion: text,
  labels: v.nullish(v.record(v.string(), v.string())),
  deletionTimestamp: v.nullish(v.string()),
});
const ContainerStatus = v.object({
  name: v.string(),
  state: v.nullish(
    v.object({
      waiting: v.nullish(v.object({ reason: text, message: text })),
      running: v.nullish(v.looseObject({})),
      terminated: v.nullish(v.object({ exitCode: v.number(), reason: text, message: text })),
    }),
  ),
});

export const Pod = v.object({
  metadata: Metadata,
  status: v.optional(
    v.object({
      ...{ phase: text, reason: text, message: text },
      conditions: v.nullish(v.array(v.object({ type: v.string(), status: v.string(), reason: text, message: text }))),
      containerStatuses: v.nullish(v.array(ContainerStatus)),
    }),
    {},
  ),
});
export type Pod = v.InferOutput<typeof Pod>;

export const Lease = v.object({
  metadata: Metadata,
  spec: v.object({
    holderIdentity: v.nullish(v.string()),
    leaseDurationSeconds: v.nullish(v.number()),
    renewTime: v.nullish(v.string()),
  }),
});
export type Lease = v.InferOutput<typeof Lease>;
