import { readBoundedFile } from './bounded-file.ts';

/**
 * Names a user for a message: account name and uid, the uid alone without an account.
 *
 * @example describeUser(0) // 'root (uid 0)'
 */
export function describeUser(uid: number): string {
  const name = accountName(uid);
  return name === undefined ? `uid ${uid}` : `${name} (uid ${uid})`;
}

/** Reads the local accounts only: a message is not worth a question to a directory service. */
function accountName(uid: number): string | undefined {
  try {
    const lines = readBoundedFile('/etc/passwd', { owner: 'any', links: 'follow' })?.split('\n') ?? [];
    const name = lines.map((line) => line.split(':')).find((fields) => fields[2] === String(uid))?.[0];
    return name !== undefined && /^[\w.-]{1,64}$/.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}
