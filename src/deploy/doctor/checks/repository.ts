import { lstatSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { missingPermissions } from '../../../github/index.ts';
import { lastLines } from '../../engine/index.ts';
import { containerPaths } from '../../files/index.ts';
import { readInstallation } from '../../github/index.ts';
import type { RepositoryView } from '../config-view.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn } from '../finding.ts';
import { limits } from '../limits.ts';
import { originOf } from '../origin.ts';
import type { Finding } from '../types.ts';

/** The table of checks has these once for each repository. */
type Look = (repository: RepositoryView, context: DoctorContext, signal: AbortSignal) => Finding | Promise<Finding>;

const again = (name: string): string => `oratorio server add-repo github:${name}`;

/** The route leads below the workspace, to a checkout of git (specification §4.4, rule 8). */
export const checkout: Look = ({ repository, workspacePath }, context) => {
  if (workspacePath === null)
    return fail('It has no route in AgentServer.RepositoryWorkspaceRoutes.', again(repository));
  if (!workspacePath.startsWith(`${containerPaths.workspace}/`) || workspacePath.split('/').includes('..'))
    return fail(
      `Its route ${workspacePath} is not below ${containerPaths.workspace}.`,
      'Both containers see only that directory: put the checkout there.',
    );
  const path = context.onHost(workspacePath);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return fail(`${path} does not exist.`, again(repository));
  if (!found.isDirectory()) return fail(`${path} is not a directory.`, `Move it away, then: ${again(repository)}`);
  return statSync(join(path, '.git'), { throwIfNoEntry: false }) === undefined
    ? fail(`${path} is not a git repository.`, `Move it away, then: ${again(repository)}`)
    : ok(`${workspacePath} is a checkout.`);
};

/** Reads the file without git: a program in the containers could make git run a command when it opens the repository. */
export const origin: Look = async ({ repository, workspacePath }, context, signal) => {
  if (workspacePath === null) return fail('It has no checkout.', again(repository));
  const file = join(context.onHost(workspacePath), '.git', 'config');
  if (context.git instanceof Error) throw context.git;
  const args = ['config', '--no-includes', '--file', file, '--get', 'remote.origin.url'];
  const { exitCode, stdout } = await context.git(args, { timeoutMs: limits.gitMs, signal });
  const url = stdout.trim();
  if (exitCode !== 0 || url === '') return fail('The checkout has no remote called origin.', again(repository));
  const found = originOf(url);
  const set = `git remote set-url origin https://${context.config().gitHost}/${repository}.git`;
  if (found === null)
    return isAbsolute(url) || url.startsWith('file:///')
      ? warn('origin is a directory of this host.', `Right for a mirror on this host; otherwise: ${set}`)
      : fail('origin is not the address of a repository at a host.', set);
  if (found.hasCredentials)
    return fail(
      'The address of origin carries credentials.',
      `Everybody in the containers can read them. Revoke them, then: ${set}`,
    );
  if (found.path.toLowerCase() !== repository.toLowerCase())
    return fail(`origin is ${found.path} at ${found.host}.`, set);
  return found.host === context.config().gitHost
    ? ok(`origin is ${found.path} at ${found.host}.`)
    : warn(
        `origin is at ${found.host}, not at ${context.config().gitHost}.`,
        `Right when that is a name of your SSH configuration; otherwise: ${set}`,
      );
};

/** Runs git inside of the container, because the configuration of a checkout can make git run programs. */
export const clean: Look = async ({ workspacePath }, context, signal) => {
  const backend = await context.service('backend');
  if (workspacePath === null || backend === undefined) return fail('It has no checkout.', null);
  const git = [
    'git',
    '--no-optional-locks',
    '-c',
    'core.fsmonitor=false',
    '-c',
    `safe.directory=${workspacePath}`,
    '-C',
    workspacePath,
  ];
  const args = ['exec', backend.container, ...git, 'status', '--porcelain', '--untracked-files=normal'];
  const { exitCode, stdout, stderr } = await context.engine().run(args, context.asking(signal));
  if (exitCode !== 0)
    return fail(
      `git cannot read the checkout in the container: ${lastLines(stderr, 1)}`,
      'See that its files belong to the user of the containers.',
    );
  const changed = stdout.split('\n').filter((line) => line !== '' && !/^\?\? "?\.oratorio\//.test(line)).length;
  return changed === 0
    ? ok('Nothing in it is changed.')
    : warn(
        `${changed} files in it are changed or new.`,
        'Reviews do not see that. If you do not need it: git stash --include-untracked',
      );
};

/** Both containers see the same directory by the same name: by its device and number. */
export const sameDirectory: Look = async ({ workspacePath }, context, signal) => {
  if (workspacePath === null) return fail('It has no route.', null);
  const numbers = await Promise.all(
    (['backend', 'agent'] as const).map(async (service) => {
      const numbers = ['stat', '--dereference', '--format', '%d:%i', workspacePath];
      const { exitCode, stdout } = await context.inside(service, numbers, { signal });
      return exitCode === 0 ? stdout.trim() : null;
    }),
  );
  const [ofBackend, ofAgent] = numbers;
  if (ofBackend === null || ofAgent === null)
    return fail(
      `The ${ofBackend === null ? 'backend' : 'agent server'} does not see ${workspacePath}.`,
      'oratorio server restart',
    );
  return ofBackend === ofAgent
    ? ok(`Both containers see it at ${workspacePath}.`)
    : fail(
        `${workspacePath} is another directory in each container.`,
        'Both must mount the same workspace: oratorio server restart',
      );
};

/** The App may read it, and write to it where that is on. */
export const installation: Look = async ({ repository }, context) => {
  const found = await readInstallation(context.app(), repository);
  if (found === null)
    return fail('The App is not installed for it.', 'Install the App for this repository, on its page at GitHub.');
  if (found.isSuspended) return fail('The installation of the App is suspended.', 'Unsuspend it at GitHub.');
  const missing = missingPermissions(found.permissions, context.config().writesEnabled);
  return missing.length === 0
    ? ok(`Installation ${found.id} grants every needed permission.`)
    : fail(
        `Installation ${found.id} lacks ${missing.join(', ')}.`,
        'Accept the new permissions of the App for this installation.',
      );
};
