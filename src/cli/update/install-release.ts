import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../lib/index.ts';
import { acquireLock } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { during } from '../hub.ts';
import { downloadReleaseFile } from './address.ts';
import type { Found } from './find-release.ts';
import { currentVersion, type OwnInstallation } from './installation.ts';
import { detachHub, isHubRunning, startHubOf } from './replace-hub.ts';
import { endTrial, tryVersion } from './trial.ts';
import { unpackRelease } from './unpack.ts';
import {
  addVersion,
  installedVersion,
  makeWorkDirectory,
  removeOldVersions,
  removeUnfinished,
  switchTo,
  unfinishedOf,
} from './versions.ts';

/** Size limit of a tarball, in bytes. */
export const tarballBytes = 100e6;
/** Time limit for replacing a Hub, including the restart of the previous one. */
const replaceMs = 120_000;

/**
 * Installs a release and replaces a running Hub.
 *
 * @returns whether a Hub was replaced
 * @throws CliError; the previous version then stays in use
 */
export async function installRelease(
  context: CommandContext,
  installation: OwnInstallation,
  directory: URL,
  found: Found,
): Promise<boolean> {
  const lock = acquireLock(join(installation.base, 'update.lock'));
  if (lock === 'held')
    throw new CliError(
      'precondition',
      'Another update is running.',
      'Wait until it has ended, then try again.',
      'updateUnderWay',
    );
  try {
    for (const work of unfinishedOf(installation)) await endTrial(join(work, 'trial'));
    removeUnfinished(installation);
    const before = currentVersion(installation);
    const name =
      installedVersion(installation, found.version, found.sha256) ??
      (await add(context, installation, directory, found));
    switchTo(installation, name);
    const isReplaced = await replaceHub(context, installation, { before, name, version: found.version });
    await removeOldVersions(installation, [before], context.env);
    return isReplaced;
  } finally {
    lock.release();
  }
}

/** Downloads, verifies, unpacks and tries a version. @returns its directory name */
async function add(
  context: CommandContext,
  installation: OwnInstallation,
  directory: URL,
  { name, version, sha256 }: Found,
): Promise<string> {
  const { env, signal } = context;
  const work = makeWorkDirectory(installation);
  try {
    const archive = join(work, 'archive');
    const download = { directory, name, limit: tarballBytes, signal };
    const sum = await during(context, `Downloading ${name}`, () => downloadReleaseFile(download, archive));
    if (sum !== sha256) {
      const problem = `${name} does not match the checksum of the release.`;
      throw new CliError('failure', problem, 'Nothing was changed. Try again later.', 'wrongChecksum');
    }
    const top = name.replace(/\.tar\.gz$/, '');
    const tree = join(work, 'tree');
    await unpackRelease(archive, tree, top, signal);
    const unpacked = join(tree, top);
    await during(context, `Trying Oratorio ${version}`, () =>
      tryVersion({ directory: unpacked, version, place: join(work, 'trial'), env, signal }),
    );
    return addVersion(installation, unpacked, version, sha256);
  } finally {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Versions {
  /** Directory name of the previous version. */
  readonly before: string;
  /** Directory name of the new version. */
  readonly name: string;
  readonly version: string;
}

/** Ignores interrupts: otherwise the user could be left without a Hub of either version. */
async function replaceHub(
  context: CommandContext,
  installation: OwnInstallation,
  versions: Versions,
): Promise<boolean> {
  const { before, name, version } = versions;
  const calm = { ...context, signal: AbortSignal.timeout(replaceMs) };
  const { base } = installation;
  const hubOf = (each: string) => startHubOf(calm, join(base, 'versions', each), join(base, 'current'));
  if (!(await isHubRunning(calm))) return false;
  try {
    await during(context, 'Replacing the Hub', async () => {
      await detachHub(calm);
      await hubOf(name);
    });
    return true;
  } catch (error) {
    switchTo(installation, before);
    await hubOf(before);
    const problem = `The Hub of Oratorio ${version} does not start: ${messageOf(error)}`;
    throw new CliError('unhealthy', problem, `Oratorio ${before} is in use again, with its Hub.`, 'rolledBack');
  }
}
