import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { DetailedPeerCertificate } from 'node:tls';
import type { DoctorContext } from '../context.ts';
import { fail, ok, warn } from '../finding.ts';
import { certificateOf } from '../gateway.ts';
import { limits } from '../limits.ts';
import type { Finding } from '../types.ts';

const logs = 'The gateway says why: oratorio server logs --service webhook-gateway';

/** Checks the certificate that GitHub sees: its host, its issuer and its end. */
export async function certificate(context: DoctorContext, signal: AbortSignal): Promise<Finding> {
  const { name } = context.publicHost();
  const asked = AbortSignal.any([signal, AbortSignal.timeout(limits.askMs)]);
  const shown = await certificateOf(context.gateway, name, asked).catch((error: NodeJS.ErrnoException) => error);
  if (shown instanceof Error)
    return fail(
      `No TLS connection for ${name} (${shown.code ?? shown.message}).`,
      `There may be no certificate yet. ${logs}`,
    );
  const { certificate: seen, distrust } = shown;
  if (!isFor(name, seen)) return fail(`The certificate is not for ${name}.`, logs);
  const life = lifeOf(seen, context.host.now());
  if (life.leftMs <= 0) return fail(`The certificate ended at ${life.end}.`, logs);
  const saw = `Of ${issuerOf(seen)}, until ${life.end}.`;
  if (distrust !== null)
    return fail(`${saw} It is not trusted (${distrust}).`, `GitHub delivers only to a certificate it trusts. ${logs}`);
  const isLate = life.leftMs < life.wholeMs * limits.certificateLifeLeft;
  return isLate
    ? warn(`${saw} It should have been renewed by now.`, `Ports 80 and 443 must be open. ${logs}`)
    : ok(saw);
}

/** Not `tls.checkServerIdentity`: it does not know an IPv6 address again. */
function isFor(name: string, { raw }: DetailedPeerCertificate): boolean {
  const certified = new X509Certificate(raw);
  const found = isIP(name) === 0 ? certified.checkHost(name, { subject: 'never' }) : certified.checkIP(name);
  return found !== undefined;
}

function lifeOf({ valid_from, valid_to }: DetailedPeerCertificate, now: number) {
  const end = Date.parse(valid_to);
  return { end: new Date(end).toISOString(), leftMs: end - now, wholeMs: end - Date.parse(valid_from) };
}

function issuerOf({ issuer }: DetailedPeerCertificate): string {
  const named = [issuer.O, issuer.CN].flatMap((each) => each ?? []);
  return named.length === 0
    ? 'an unnamed issuer'
    : named
        .join(' ')
        .replace(/[^\x20-\x7e]+/g, ' ')
        .slice(0, 100);
}
