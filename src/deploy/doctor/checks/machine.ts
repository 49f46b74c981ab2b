import { outgoingFetch } from '../../../http/index.ts';
import { isAtLeast, versionIn } from '../../engine/index.ts';
import { AppQuestionError } from '../../github/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, skip, warn } from '../finding.ts';
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

/** This clock against that of GitHub's API: a signature of the App is valid for minutes only. */
export async function clock(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { endpoint } = context.config();
  const response = await outgoingFetch(endpoint, {
    method: 'HEAD',
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]),
  }).catch((error: unknown) => {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no answer';
    throw new AppQuestionError('unreachable', `${new URL(endpoint).host} cannot be reached (${reason}).`);
  });
  const theirs = Date.parse(response.headers.get('date') ?? '');
  if (Number.isNaN(theirs)) return skip(`${new URL(endpoint).host} does not report the time.`);
  return skewFinding(context.host.now() - theirs);
}

function skewFinding(skewMs: number): Finding {
  const seconds = Math.trunc(Math.abs(skewMs) / 1_000);
  const saw = seconds === 0 ? 'The clock is right.' : `The clock is ${seconds} s ${skewMs > 0 ? 'fast' : 'slow'}.`;
  const hint = 'Let the system keep time: timedatectl set-ntp true';
  if (Math.abs(skewMs) >= limits.clockSkewMs.fail) return fail(saw, hint);
  return Math.abs(skewMs) >= limits.clockSkewMs.warn ? warn(saw, hint) : ok(saw);
}

/** Free space for checkouts, images and the database. */
export async function disk(context: DoctorContext): Promise<Finding> {
  const free = await context.host.freeBytes(context.layout.directory);
  const saw = `${(free / 1024 ** 3).toFixed(1)} GiB are free.`;
  const hint = 'Remove unused images (docker image prune), or give the disk more room.';
  if (free < limits.freeBytes.fail) return fail(saw, hint);
  return free < limits.freeBytes.warn ? warn(saw, hint) : ok(saw);
}
