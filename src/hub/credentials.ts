import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { readBoundedFile } from '../lib/index.ts';
import { writeFileAtomic } from '../supervise/index.ts';

/** 32 random bytes in an alphabet that needs no escaping in a URL. */
export function createToken(): string {
  return randomBytes(32).toString('base64url');
}

function mac(key: Buffer, purpose: string, workspacePath: string): Buffer {
  return createHmac('sha256', key).update(`${purpose}\0${workspacePath}`).digest();
}

function sameBytes(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A file of the state directory that a later Hub needs. A running Hub has its content and can save it again. */
export interface OwnedFile {
  readonly file: string;
  save(): void | Promise<void>;
}

/** Credentials by which the successive Hubs of a user recognise each other's agent servers. */
export interface Credentials extends OwnedFile {
  /** Given to an agent server, and published in its lock file: a later Hub adopts a server that carries it. */
  adoptionProof(workspacePath: string): string;
  verifiesAdoption(workspacePath: string, proof: string | null): boolean;
  /** Token of the WebSocket for a start and the ones that wake the workspace after it. `seed` is not a secret. */
  socketToken(workspacePath: string, seed: string): string;
  /** May only post notifications and reports for this workspace. Needs no memory: any Hub with the same key can verify it. */
  notificationToken(workspacePath: string): string;
  /** The workspace a notification token was made for, or null. */
  notificationScope(token: string): string | null;
  /** Seals facts about a scoped token. Needs no memory, as the notification token. */
  sealScoped(facts: string): string;
  /** The facts that `sealScoped` sealed, or null. */
  openScoped(token: string): string | null;
  /** Names a workspace in addresses: the same for every Hub of this home, and no path can be confirmed by guessing. */
  workspaceId(workspacePath: string): string;
  /** Label of the containers of this home. Contains no path, because the engine shows labels to all its users. */
  readonly homeLabel: string;
}

const idAlphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const idLength = 16;

const tokenPrefix = 'ntf.';
const scopedPrefix = 'scp.';

/** Reads the adoption key of the state directory, or makes one (0600). */
export function loadCredentials(statePath: string): Credentials {
  const file = join(statePath, 'adoption.key');
  const known = readKey(file);
  const key = known ?? randomBytes(32);
  const save = () => writeFileAtomic(file, `${key.toString('hex')}\n`);
  if (!known) save();
  return {
    file,
    save,
    homeLabel: mac(key, 'place', '').toString('hex').slice(0, 40),
    adoptionProof: (workspacePath) => mac(key, 'adopt', workspacePath).toString('base64url'),
    verifiesAdoption: (workspacePath, proof) =>
      proof !== null && sameBytes(mac(key, 'adopt', workspacePath), Buffer.from(proof, 'base64url')),
    socketToken: (workspacePath, seed) => mac(key, 'socket', `${workspacePath}\0${seed}`).toString('base64url'),
    notificationToken: (workspacePath) =>
      `${tokenPrefix}${Buffer.from(workspacePath).toString('base64url')}.${mac(key, 'notify', workspacePath).toString('base64url')}`,
    notificationScope(token) {
      if (!token.startsWith(tokenPrefix)) return null;
      const [path = '', proof = ''] = token.slice(tokenPrefix.length).split('.');
      const workspacePath = Buffer.from(path, 'base64url').toString();
      return sameBytes(mac(key, 'notify', workspacePath), Buffer.from(proof, 'base64url')) ? workspacePath : null;
    },
    sealScoped: (facts) =>
      `${scopedPrefix}${Buffer.from(facts).toString('base64url')}.${mac(key, 'scoped', facts).toString('base64url')}`,
    openScoped(token) {
      if (!token.startsWith(scopedPrefix)) return null;
      const [sealed = '', proof = ''] = token.slice(scopedPrefix.length).split('.');
      const facts = Buffer.from(sealed, 'base64url').toString();
      return sameBytes(mac(key, 'scoped', facts), Buffer.from(proof, 'base64url')) ? facts : null;
    },
    workspaceId: (workspacePath) =>
      Array.from(mac(key, 'page', workspacePath).subarray(0, idLength), (byte) => idAlphabet[byte & 31]).join(''),
  };
}

function readKey(file: string): Buffer | null {
  try {
    const key = Buffer.from(readBoundedFile(file)?.trim() ?? '', 'hex');
    return key.length === 32 ? key : null;
  } catch {
    // Missing or unreadable: a new key is made; servers of the old one are then treated as foreign.
    return null;
  }
}
