import { DeployError } from '../errors.ts';
import type { Certificates } from '../files/index.ts';
import { classifyHost, type PublicHost } from '../host/index.ts';

/**
 * The host that GitHub is to deliver to (specification §4.4, gateway rule 3). Names for tests are let through where the gateway
 * makes its certificate itself.
 * @throws DeployError (hostRefused)
 */
export function checkHost(text: string, certificates: Certificates): PublicHost {
  const verdict = classifyHost(text, { allowTestNames: certificates === 'internal' });
  if (verdict.ok) return verdict.host;
  throw new DeployError(
    'hostRefused',
    verdict.message,
    'Give a public DNS name or a public IP address of this machine.',
  );
}

export const isCertificates = (text: string): text is Certificates =>
  text === 'production' || text === 'staging' || text === 'internal';
