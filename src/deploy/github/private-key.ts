import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { DeployError } from '../errors.ts';

const fewestBits = 2_048;
const largestFile = 64 * 1_024;

/** The App's key from its file, checked as `usablePrivateKey` does. @throws DeployError secretRefused */
export function readPrivateKey(path: string): string {
  return usablePrivateKey(textOf(path), path);
}

/**
 * A key that GitHub gives out (PKCS#1) or its other spelling (PKCS#8), in the one form that signing takes everywhere.
 * @param where - how messages name it
 * @returns PKCS#8 in PEM
 * @throws DeployError secretRefused; never with a part of the key
 */
export function usablePrivateKey(text: string, where: string): string {
  const key = parsed(text, where);
  if (key.asymmetricKeyType !== 'rsa') throw refused(`${where} is not an RSA key.`);
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) < fewestBits)
    throw refused(`The key in ${where} has fewer than ${fewestBits} bits.`);
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const refused = (message: string): DeployError =>
  new DeployError(
    'secretRefused',
    message,
    'Make a new private key on the page of the App and use the file it gives you.',
  );

function textOf(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > largestFile) throw refused(`${path} is too large for a private key.`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof DeployError) throw error;
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw refused(`${path} cannot be read (${reason}).`);
  }
}

function parsed(text: string, where: string): KeyObject {
  try {
    return createPrivateKey(text.trim());
  } catch {
    // OpenSSL's message may quote the key.
    throw refused(`${where} holds no private key in PEM form.`);
  }
}
