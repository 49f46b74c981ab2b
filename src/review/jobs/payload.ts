import * as v from 'valibot';
import type { Job } from '../store/index.ts';

/** The payload of a job that is given up; undefined: it cannot be read, so nobody knows who waits for it. */
export function readable<S extends v.GenericSchema>(schema: S, { payload }: Job): v.InferOutput<S> | undefined {
  const { success, output } = v.safeParse(schema, payload);
  return success ? output : undefined;
}
