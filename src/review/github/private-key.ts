import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { SourceError } from './errors.ts';

const fewestBits = 2_048;
const largestFile = 64 * 1_024;

/** @property warning - problem with the permissions of the key's file */
export interface PrivateKey {
  /** PKCS#8, the only form that WebCrypto takes. */
  readonly pem: string;
  readonly warning?: string;
}

/**
 * The App's key, from the setting itself or else from its file; PKCS#1 (as GitHub gives it out) or PKCS#8. In an environment
 * variable `\n` may stand for line ends. Each call reads the file, so that a key can be changed.
 * @throws SourceError privateKeyMissing, privateKeyInvalid, privateKeyTooShort; never with a part of the key
 */
export function loadPrivateKey({ PrivateKey, PrivateKeyPath }: PrivateKeySettings): PrivateKey {
  if (PrivateKey.trim() !== '') return { pem: checked(PrivateKey.replaceAll('\\n', '\n'), 'GitHub.PrivateKey') };
  if (PrivateKeyPath === '') {
    throw new SourceError('privateKeyMissing', 'Set GitHub.PrivateKeyPath or GitHub.PrivateKey');
  }
  const { text, isOpen } = fileOf(PrivateKeyPath);
  const pem = checked(text, PrivateKeyPath);
  return isOpen ? { pem, warning: `${PrivateKeyPath} can be read by other users: chmod 600` } : { pem };
}
export interface PrivateKeySettings {
  readonly PrivateKey: string;
  readonly PrivateKeyPath: string;
}

function fileOf(path: string): { readonly text: string; readonly isOpen: boolean } {
  try {
    const { mode, size } = statSync(path);
    if (size > largestFile) throw new SourceError('privateKeyInvalid', `${path} is too large for a private key`);
    return { text: readFileSync(path, 'utf8'), isOpen: process.platform !== 'win32' && (mode & 0o077) !== 0 };
  } catch (error) {
    if (error instanceof SourceError) throw error;
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new SourceError('privateKeyMissing', `The App's private key ${path} cannot be read: ${reason}`);
  }
}

function checked(text: string, where: string): string {
  const key = parsed(text, where);
  if (key.asymmetricKeyType !== 'rsa') {
    throw new SourceError('privateKeyInvalid', `The private key in ${where} is not an RSA key`);
  }
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) < fewestBits) {
    throw new SourceError('privateKeyTooShort', `The private key in ${where} has fewer than ${fewestBits} bits`);
  }
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function parsed(text: string, where: string): KeyObject {
  try {
    return createPrivateKey(text.trim());
  } catch {
    // OpenSSL's message may quote the key.
    throw new SourceError('privateKeyInvalid', `${where} holds no private key in PEM form (PKCS#1 or PKCS#8)`);
  }
}
