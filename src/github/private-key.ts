import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { GitHubError } from './error.ts';

const fewestBits = 2_048;
const largestFile = 64 * 1_024;

/** @property warning - problem with the permissions of the key's file */
export interface PrivateKey {
  /** PKCS#8, the only form that WebCrypto takes. */
  readonly pem: string;
  readonly warning?: string;
}

/** Reads the key of the App, checked like `usablePrivateKey`. @throws GitHubError */
export function readPrivateKey(path: string): PrivateKey {
  const { text, isOpen } = fileOf(path);
  const pem = usablePrivateKey(text, path);
  return isOpen ? { pem, warning: `${path} can be read by other users: chmod 600` } : { pem };
}

function fileOf(path: string): { readonly text: string; readonly isOpen: boolean } {
  try {
    const { mode, size } = statSync(path);
    if (size > largestFile) throw new GitHubError('privateKeyInvalid', `${path} is too large for a private key`);
    return { text: readFileSync(path, 'utf8'), isOpen: process.platform !== 'win32' && (mode & 0o077) !== 0 };
  } catch (error) {
    if (error instanceof GitHubError) throw error;
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new GitHubError('privateKeyMissing', `The App's private key ${path} cannot be read: ${reason}`);
  }
}

/**
 * Checks a key that GitHub gives out (PKCS#1) or its other form (PKCS#8).
 *
 * @param where name in messages
 * @returns PKCS#8 in PEM
 * @throws GitHubError privateKeyInvalid, privateKeyTooShort; never with a part of the key
 */
export function usablePrivateKey(text: string, where: string): string {
  const key = parsed(text, where);
  if (key.asymmetricKeyType !== 'rsa') {
    throw new GitHubError('privateKeyInvalid', `The private key in ${where} is not an RSA key`);
  }
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) < fewestBits) {
    throw new GitHubError('privateKeyTooShort', `The private key in ${where} has fewer than ${fewestBits} bits`);
  }
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function parsed(text: string, where: string): KeyObject {
  try {
    return createPrivateKey(text.trim());
  } catch {
    // OpenSSL's message may quote the key.
    throw new GitHubError('privateKeyInvalid', `${where} holds no private key in PEM form (PKCS#1 or PKCS#8)`);
  }
}
