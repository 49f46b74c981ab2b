import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { DoctorContext } from '../context.ts';
import { fail, ok } from '../finding.ts';
import type { Finding } from '../types.ts';

/** The gateway answers for a host that GitHub can reach. */
export function publicHost({ gatewayHost }: DoctorContext): Finding {
  const hint = 'oratorio server webhook enable --public-host <name or address>';
  if (gatewayHost === null) return fail('The Caddyfile does not say for which host it is.', hint);
  return gatewayHost.ok ? ok(`It is for ${gatewayHost.host.origin}.`) : fail(gatewayHost.message, hint);
}

/** Reads a nonce and a proof, and says whether the backend's own secret makes the same proof. Prints one word. */
const compare = `
const {createHash, createHmac, timingSafeEqual} = require('node:crypto');
const [nonce, proof] = require('node:fs').readFileSync(0, 'utf8').split('\\n');
const names = ['oratorio__github__webhooksecret', 'oratorio_github_webhook_secret'];
const secret = Object.entries(process.env).find(([name, value]) => value && names.includes(name.toLowerCase()))?.[1];
const mine = secret && createHmac('sha256', nonce).update(createHash('sha256').update(secret).digest()).digest();
const theirs = Buffer.from(proof, 'hex');
console.log(!mine ? 'missing' : mine.length === theirs.length && timingSafeEqual(mine, theirs) ? 'same' : 'other');
`;

const restart = 'oratorio server restart';
const words: Readonly<Record<string, Finding>> = {
  same: ok('Configured; the backend runs with it.'),
  other: fail('Configured; the backend runs with another one.', restart),
  missing: fail('Configured; the backend was started without it.', restart),
};

/** The running backend has the secret of `.env`. Both are compared inside of its container; neither leaves where it is. */
export async function secret(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const value = context.value('ORATORIO_GITHUB_WEBHOOK_SECRET');
  if (value === '') return fail('Missing.', 'oratorio server webhook enable makes one.');
  const nonce = randomBytes(16).toString('hex');
  const proof = createHmac('sha256', nonce).update(sha256(value)).digest('hex');
  const { stdout } = await context.inside('backend', ['node', '-e', compare], {
    input: `${nonce}\n${proof}\n`,
    signal,
  });
  return (
    words[stdout.trim()] ??
    fail('The container of the backend cannot be asked.', 'oratorio server logs --service backend')
  );
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();
