import * as v from 'valibot';
import type { Job } from '../store/index.ts';

/** Parses the payload of a job without attempts left. @returns undefined for an invalid payload, which names no delivery to settle */
export function parsedPayload<S extends v.GenericSchema>(schema: S, { payload }: Job): v.InferOutput<S> | undefined {
  const { success, output } = v.safeParse(schema, payload);
  return success ? output : undefined;
}
