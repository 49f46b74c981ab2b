/** Directories of an installation. Each change is one rename, so a killed update leaves a working installation. */
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../supervise/index.ts';
import { currentVersion, type OwnInstallation } from './installation.ts';

const versionsOf = ({ base }: OwnInstallation): string => join(base, 'versions');

/** Prefix of a directory that is not a version: not yet, or no longer. */
const unfinished = '.new-';
/** File in a version with the SHA-256 of its tarball. `install.sh` also writes and reads it. */
const digestFile = '.digest';

/** A free path for a directory that is not a version. */
const newName = (installation: OwnInstallation): string =>
  join(versionsOf(installation), `${unfinished}${randomBytes(6).toString('hex')}`);

/** Creates a directory for a download beside the versions. */
export function makeWorkDirectory(installation: OwnInstallation): string {
  const directory = newName(installation);
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

/** Directories of unfinished updates. */
export const unfinishedOf = (installation: OwnInstallation): readonly string[] =>
  readdirSync(versionsOf(installation))
    .filter((name) => name.startsWith(unfinished))
    .map((name) => join(versionsOf(installation), name));

/** Removes the directories of updates that were killed. Needs the lock of the update. */
export function removeUnfinished(installation: OwnInstallation): void {
  for (const directory of unfinishedOf(installation)) rmSync(directory, { recursive: true, force: true });
}

/** Directory name of the version from this tarball; undefined if it is not installed. */
export function installedVersion(installation: OwnInstallation, version: string, sha256: string): string | undefined {
  return namesFor(version, sha256).find((name) => digestOf(installation, name) === sha256);
}

/** Directory names for a version and for another build of it. A build that may be running is never replaced. */
const namesFor = (version: string, sha256: string): readonly string[] => [version, `${version}+${sha256.slice(0, 8)}`];

function digestOf(installation: OwnInstallation, name: string): string | undefined {
  try {
    return readFileSync(join(versionsOf(installation), name, digestFile), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Moves a version that passed its trial to its final directory. @returns its directory name */
export function addVersion(installation: OwnInstallation, tree: string, version: string, sha256: string): string {
  writeFileSync(join(tree, digestFile), `${sha256}\n`);
  const free = namesFor(version, sha256).find((name) => !existsSync(join(versionsOf(installation), name)));
  const name = free ?? `${version}+${randomBytes(4).toString('hex')}`;
  renameSync(tree, join(versionsOf(installation), name));
  return name;
}

/** Switches the link `current` to a version. */
export function switchTo({ base }: OwnInstallation, name: string): void {
  const next = join(base, `.current-${process.pid}`);
  rmSync(next, { force: true });
  symlinkSync(join('versions', name), next);
  renameSync(next, join(base, 'current'));
}

/**
 * Removes all versions except the current one, those in `kept`, and those from which a process runs. Removes nothing if the processes
 * cannot be listed.
 */
export async function removeOldVersions(
  installation: OwnInstallation,
  kept: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const programs = await runningPrograms(env);
  if (programs === undefined) return;
  const spared = new Set([...kept, currentVersion(installation)]);
  for (const name of readdirSync(versionsOf(installation))) {
    const directory = join(versionsOf(installation), name);
    if (spared.has(name) || programs.includes(`${directory}/`)) continue;
    // A removal that is killed leaves no half version under the name of a whole one.
    const removed = newName(installation);
    renameSync(directory, removed);
    rmSync(removed, { recursive: true, force: true });
  }
}

/** Command lines of all processes. */
async function runningPrograms(env: Readonly<Record<string, string | undefined>>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  const run = { program: 'ps', args: ['-A', '-ww', '-o', 'args='], env };
  const end = await runProgram({ ...run, stdout: (chunk) => chunks.push(chunk) }).catch(() => undefined);
  return end?.exitCode === 0 ? Buffer.concat(chunks).toString() : undefined;
}
