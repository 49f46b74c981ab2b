import { isAtLeast, versionIn } from '../../engine/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn } from '../finding.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

const oldestGit = '2.30';

export function engine(context: DoctorContext): Finding {
  const { kind, version, isRootless } = context.engine().runtime;
  const saw = `${kind} ${version}${isRootless ? ', rootless' : ''}.`;
  if (kind === 'podman') return warn(saw, 'The stack is tested with Docker; podman works where it can.');
  if (isRootless && context.hasIngress)
    return warn(saw, 'To publish ports 80 and 443 it needs: sysctl net.ipv4.ip_unprivileged_port_start=80');
  return ok(saw);
}

export function composition(context: DoctorContext): Finding {
  return ok(`Compose ${context.engine().compose.version}.`);
}

export async function git(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  if (context.git instanceof Error) throw context.git;
  const { exitCode, stdout } = await context.git(['--version'], { timeoutMs: limits.gitMs, signal });
  const version = versionIn(stdout);
  if (exitCode !== 0 || version === null)
    return fail('git does not say its version.', 'Install it: apt-get install git');
  const saw = `git ${version}.`;
  return isAtLeast(version, oldestGit) ? ok(saw) : warn(saw, `Install git ${oldestGit} or newer.`);
}
