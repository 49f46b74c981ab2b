import { DeployError } from '../errors.ts';
import { ownershipOf } from '../files/index.ts';
import type { Plan, Step } from '../stack-plan.ts';
import type { StackFiles } from './stack-files.ts';

/** Files that a plan must not overwrite or remove, with the reason. */
const refusals = {
  edited: (path: string) =>
    new DeployError(
      'editedFile',
      `${path} was changed by hand since it was made here. It is not replaced.`,
      'Move it away to have it made again, or undo your change to it.',
    ),
  foreign: (path: string) =>
    new DeployError(
      'foreignFile',
      `${path} was not made here. It is not replaced.`,
      'Move it away, then run the command again.',
    ),
} as const;

/**
 * Checks every file that a plan writes or removes, before the first is touched.
 *
 * @throws DeployError editedFile, foreignFile; fileFailed at a path that is not a regular file
 */
export function checkFiles(plan: Plan, files: StackFiles): void {
  for (const step of plan.phases.flatMap(({ steps }) => steps)) checks[step.do]?.(step, files);
}

type Check = (step: Step, files: StackFiles) => void;

const checks: { readonly [D in Step['do']]?: Check } = {
  makeDirectory: (step, files) => step.do === 'makeDirectory' && mustBeDirectory(step.path, files),
  writeFile: (step, files) => step.do === 'writeFile' && mustBeWritable(step.path, files, step.owner === 'ours'),
  removeFile: (step, files) => step.do === 'removeFile' && mustBeWritable(step.path, files, true),
};

function mustBeDirectory(path: string, files: StackFiles): void {
  if (files.find(path).kind === 'file')
    throw new DeployError('fileFailed', `${files.pathOf(path)} is not a directory.`);
}

function mustBeWritable(path: string, files: StackFiles, mustBeOurs: boolean): void {
  const found = files.find(path);
  if (found.kind === 'absent') return;
  if (found.kind === 'directory') throw new DeployError('fileFailed', `${files.pathOf(path)} is a directory.`);
  if (!mustBeOurs) return;
  const ownership = ownershipOf(found.content.toString('utf8'));
  if (ownership !== 'ours') throw refusals[ownership](files.pathOf(path));
}
