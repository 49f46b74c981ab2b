import { version as ownVersion } from '../protocol/index.ts';

const numbersOf = (version: string): readonly number[] => version.split(/[.+-]/).slice(0, 2).map(Number);

/** Whether this version can use a remote Hub: it has this major version, and this or an earlier minor version. */
export function isUsableVersion(remote: string, own = ownVersion): boolean {
  const [major = Number.NaN, minor = Number.NaN] = numbersOf(remote);
  const [ownMajor = 0, ownMinor = 0] = numbersOf(own);
  return major === ownMajor && minor <= ownMinor;
}

/** Whether a remote version is newer than the versions that this one can use. @param remote null: unknown */
export function isNewerVersion(remote: string | null, own = ownVersion): boolean {
  if (remote === null) return false;
  const [major = 0, minor = 0] = numbersOf(remote);
  const [ownMajor = 0, ownMinor = 0] = numbersOf(own);
  return major > ownMajor || (major === ownMajor && minor > ownMinor);
}
