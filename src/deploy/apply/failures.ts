import { messageOf } from '../../lib/index.ts';
import { DeployError, type DeployErrorCode } from '../errors.ts';
import { secretsInEnv } from '../files/index.ts';
import type { Plan, Step } from '../stack-plan.ts';

const full = new Set(['ENOSPC', 'EDQUOT']);
const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'the operation is not permitted',
  EROFS: 'the file system is read-only',
  ENOENT: 'it, or the directory it should be in, is not there',
  ENOTDIR: 'a part of the path is not a directory, or is a symbolic link',
  ELOOP: 'a part of the path is a symbolic link',
  EIO: 'the disk does not work as it should',
};

/** Converts an error of the file system to one that names the file. A DeployError passes unchanged. */
export function fileFailure(error: unknown, path: string): DeployError {
  if (error instanceof DeployError) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (full.has(code)) {
    return new DeployError(
      'diskFull',
      `There is no room left on the disk for ${path}.`,
      'Make room, then run the command again.',
      { cause: error },
    );
  }
  const reason = reasons[code] ?? messageOf(error);
  return new DeployError('fileFailed', `${path} cannot be read or written: ${reason}.`, null, { cause: error });
}

/** Does `work`, whose errors become those of `path`. */
export function onFile<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw fileFailure(error, path);
  }
}

/** Error code by step, for failures that have no code of their own. */
const failures: { readonly [D in Step['do']]: DeployErrorCode } = {
  makeDirectory: 'fileFailed',
  writeFile: 'fileFailed',
  removeFile: 'fileFailed',
  clone: 'cloneFailed',
  giveTo: 'fileFailed',
  checkPorts: 'engineFailed',
  pullImages: 'imageFailed',
  checkComposition: 'compositionInvalid',
  checkGateway: 'gatewayInvalid',
  saveState: 'engineFailed',
  start: 'startFailed',
  awaitHealthy: 'unhealthy',
  removeServices: 'engineFailed',
};

/** Failure of a step as a DeployError. Any other error becomes its cause. */
export function stepFailure(error: unknown, what: Step['do'], key: string): DeployError {
  if (error instanceof DeployError) return error;
  const { code, message = String(error) } = (error ?? {}) as NodeJS.ErrnoException;
  const failed = typeof code === 'string' && full.has(code) ? 'diskFull' : failures[what];
  return new DeployError(failed, `The step ${key} failed: ${message}`, null, { cause: error });
}

export function cancelled(): DeployError {
  return new DeployError('cancelled', 'It was cancelled.');
}

export function unfinished(command: string, since: string): DeployError {
  return new DeployError(
    'unfinishedChange',
    `An earlier \`oratorio server ${command}\` of ${since} has not been finished.`,
    `Run \`oratorio server ${command}\` again: it continues where it stopped.`,
  );
}

/** Values that no message may show: contents of the secret files that a plan writes, their lines, and secret variables. */
export function secretsIn(plan: Plan): readonly string[] {
  const steps = plan.phases.flatMap(({ steps }) => steps);
  const contents = steps.flatMap((step) => (step.do === 'writeFile' && step.isSecret ? [step.content] : []));
  return contents.flatMap((content) => [content, ...secretsInEnv(content)]);
}
