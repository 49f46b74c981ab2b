import { createHmac, timingSafeEqual } from 'node:crypto';

const wellFormed = /^sha256=([0-9a-f]{64})$/i;

/** The 32 bytes of `X-Hub-Signature-256`; undefined when the header is absent or is not `sha256=` and 64 hex digits. */
export function parseSignature(header: string | undefined): Buffer | undefined {
  const hex = header === undefined ? undefined : wellFormed.exec(header)?.[1];
  return hex === undefined ? undefined : Buffer.from(hex, 'hex');
}

/**
 * Whether `given` is the HMAC-SHA-256 of these very bytes under one of the secrets. Every secret is tried in every case, so the
 * time reveals neither how close a guess came nor which secret it was (GitHub, "Validating webhook deliveries").
 */
export function isSignedBy(secrets: readonly string[], body: Uint8Array, given: Buffer): boolean {
  let isSigned = false;
  for (const secret of secrets) {
    if (timingSafeEqual(createHmac('sha256', secret).update(body).digest(), given)) isSigned = true;
  }
  return isSigned;
}
