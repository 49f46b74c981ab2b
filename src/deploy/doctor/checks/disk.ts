import type { DoctorContext } from '../context.ts';
import { fail, ok, warn } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

/** Room for checkouts, images and the database. */
export async function disk(context: DoctorContext): Promise<Finding> {
  const free = await context.host.freeBytes(context.layout.directory);
  const saw = `${(free / 1024 ** 3).toFixed(1)} GiB are free.`;
  const hint = 'Remove unused images (docker image prune), or give the disk more room.';
  if (free < limits.freeBytes.fail) return fail(saw, hint);
  return free < limits.freeBytes.warn ? warn(saw, hint) : ok(saw);
}
