import { createHash, randomBytes, verify } from 'node:crypto';
import type { Forge } from './forge.ts';
import type { ForgeToken } from './model.ts';

export class Refusal extends Error {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, more: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.body = { message, documentation_url: 'https://docs.github.com/rest', status: String(status), ...more };
  }
}

const mostMinutes = 10;

/** Checks the JWT of an App as GitHub does: signature, issuer, and times near now. */
export function checkJwt(forge: Forge, header: string | undefined): void {
  const [, token = ''] = /^bearer (.+)$/i.exec(header ?? '') ?? [];
  const [head = '', payload = '', signature = ''] = token.split('.');
  const isSigned =
    signature !== '' &&
    verify('RSA-SHA256', Buffer.from(`${head}.${payload}`), forge.app.publicKey, Buffer.from(signature, 'base64url'));
  if (!isSigned) throw new Refusal(401, 'A JSON web token could not be decoded');
  const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { alg?: string };
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  if (alg !== 'RS256') throw new Refusal(401, 'A JSON web token could not be decoded');
  const now = Math.floor(forge.now() / 1_000);
  const { exp, iat, iss } = claims;
  if (typeof exp !== 'number' || exp <= now) {
    throw new Refusal(
      401,
      `'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires`,
    );
  }
  if (exp > now + mostMinutes * 60) throw new Refusal(401, `'Expiration time' claim ('exp') is too far in the future`);
  if (typeof iat !== 'number' || iat > now) {
    throw new Refusal(
      401,
      `'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued`,
    );
  }
  if (String(iss) !== String(forge.app.id)) throw new Refusal(404, 'Integration not found');
}

const tokenLifeMs = 60 * 60_000;

/** `classic`: 40 characters. `stateless`: `ghs_APPID_JWT`, several hundred characters. */
export function issueToken(forge: Forge, wanted: Omit<ForgeToken, 'expiresAt'>): { value: string; expiresAt: number } {
  const expiresAt = forge.now() + (forge.tokenLifeMs ?? tokenLifeMs);
  const random = randomBytes(27).toString('hex').slice(0, 36);
  const parts = [{ alg: 'RS256' }, { jti: random, exp: expiresAt }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const value =
    forge.tokenFormat === 'classic'
      ? `ghs_${random}`
      : `ghs_${forge.app.id}_${parts.join('.')}.${randomBytes(256).toString('base64url')}`;
  forge.tokens.set(hash(value), { ...wanted, expiresAt });
  return { value, expiresAt };
}

const hash = (value: string): string => createHash('sha256').update(value).digest('hex');

/** @throws Refusal 401 */
export function tokenOf(forge: Forge, value: string): ForgeToken {
  const token = forge.tokens.get(hash(value));
  if (!token || token.expiresAt <= forge.now()) throw new Refusal(401, 'Bad credentials');
  if (forge.installations.get(token.installationId)?.isSuspended) {
    throw new Refusal(403, 'This installation has been suspended');
  }
  return token;
}

export const bearer = (header: string | undefined): string => /^(?:token|bearer) (.+)$/i.exec(header ?? '')?.[1] ?? '';

const levels = ['none', 'read', 'write', 'admin'];
export const permits = (granted: string | undefined, wanted: string): boolean =>
  levels.indexOf(granted ?? 'none') >= levels.indexOf(wanted);
