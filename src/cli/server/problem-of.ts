import { messageOf } from '../../lib/index.ts';

/** What `work` complains about, in words; undefined when it does not. */
export function problemOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
