import { randomUUID } from 'node:crypto';
import { containerPaths } from '../../files/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

/** Creates a file; fails where there is one already. By the shell, which starts in a fraction of Node's time. */
const write = 'umask 077; set -o noclobber; printf %s "$2" > "$1"';

/** Checks that backend and agent server have the workspace at the same path (specification §4.4, rule 8). */
export async function workspace(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const nonce = randomUUID();
  const path = `${containerPaths.workspace}/.oratorio-doctor-${nonce}`;
  try {
    const written = await context.inside('backend', ['sh', '-c', write, 'sh', path, nonce], { signal });
    if (written.exitCode !== 0)
      return fail(
        `The backend cannot write to ${containerPaths.workspace}.`,
        `chown -R ${context.value('ORATORIO_UID')} ${context.layout.workspace}; on a host with SELinux: chcon -R -t container_file_t ${context.layout.workspace}`,
      );
    const seen = await context.inside('agent', ['cat', path], { signal });
    return seen.exitCode === 0 && seen.stdout === nonce
      ? ok(`Both containers have it at ${containerPaths.workspace}.`)
      : fail(
          'The agent server does not read the files of the backend.',
          'Both must mount the same workspace as the same user: oratorio server restart',
        );
  } finally {
    // Also when the check itself was stopped.
    await context.inside('backend', ['rm', '--force', path], { signal: AbortSignal.timeout(limits.askMs) });
  }
}
