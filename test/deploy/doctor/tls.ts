import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { GatewayAddress } from '../../../src/deploy/doctor/index.ts';
import { scratch } from './harness.ts';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate that signs itself. @param subject - `DNS:…` or `IP:…`; `days` - how long it holds from today on */
export function certificateFor(t: Test, subject: string, days = 90): Certificate {
  const directory = scratch(t);
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const names = ['-subj', '/O=Test authority/CN=gateway', '-addext', `subjectAltName=${subject}`];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, '-days', String(days), ...names], {
    stdio: 'ignore',
  });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

/** The certificate with its dates changed: it expired yesterday. */
export function expired(t: Test, { key, cert }: Certificate): Certificate {
  const directory = scratch(t);
  const [keyFile, certFile, out] = ['key.pem', 'cert.pem', 'out.pem'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(keyFile, key);
  writeFileSync(certFile, cert);
  execFileSync('openssl', ['x509', '-in', certFile, '-signkey', keyFile, '-days', '-1', '-out', out], {
    stdio: 'ignore',
  });
  return { key, cert: readFileSync(out, 'utf8') };
}

/** A gateway of our own on two ports of the loopback. */
export async function gateway(
  t: Test,
  { key, cert }: Certificate,
  { onHttps, onHttp }: { readonly onHttps: RequestListener; readonly onHttp?: RequestListener },
): Promise<GatewayAddress> {
  const https = createServer({ key, cert }, onHttps);
  const http = createHttpServer(onHttp ?? ((_, response) => void response.writeHead(404).end()));
  const [httpsPort, httpPort] = await Promise.all([https, http].map((server) => listening(t, server)));
  return { host: '127.0.0.1', httpPort: httpPort ?? 0, httpsPort: httpsPort ?? 0, ca: [cert] };
}

async function listening(t: Test, server: Server & { closeAllConnections(): void }): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}
