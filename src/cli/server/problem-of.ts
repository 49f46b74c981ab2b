import { messageOf } from '../../lib/index.ts';

/** Message of the error that `work` throws; undefined when it throws none. */
export function problemOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
