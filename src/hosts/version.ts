import { compareVersions } from '../lib/index.ts';
import { version as ownVersion } from '../protocol/index.ts';

const withoutPatch = (version: string): string => version.replace(/^(\d+\.\d+).*/, '$1.0');
const majorOf = (version: string): string | undefined => version.split('.', 1)[0];

/** Whether this version can use a remote Hub: it has this major version, and this or an earlier minor version. */
export const isUsableVersion = (remote: string, own = ownVersion): boolean =>
  majorOf(remote) === majorOf(own) && compareVersions(withoutPatch(remote), withoutPatch(own)) <= 0;

/** Whether a remote version is newer than the versions that this one can use. @param remote null: unknown */
export const isNewerVersion = (remote: string | null, own = ownVersion): boolean =>
  remote !== null && compareVersions(withoutPatch(remote), withoutPatch(own)) > 0;
