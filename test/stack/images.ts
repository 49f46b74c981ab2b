/** The images of a run, without a registry. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../deploy/must.ts';
import { caddy211 } from '../deploy/tools.ts';
import { images, variable } from './variables.ts';

const imageMs = 300_000;

/** The authority that vouches for everything that containers and this machine reach at `hostAddress`. */
export interface Authority {
  readonly certificate: string;
  readonly key: string;
}

/** For `openssl req`: a key that takes no search for primes. */
export const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export const authorityOf = (directory: string): Authority => ({
  certificate: join(directory, 'authority.crt'),
  key: join(directory, 'authority.key'),
});

/** Debian, with an authority of this run, and the gateway's image: both stand in for images of a registry. */
export async function makeBaseImages(directory: string): Promise<void> {
  const docker = (...args: string[]) => must('docker', args, { timeoutMs: imageMs });
  const { certificate, key } = authorityOf(directory);
  const subject = ['-subj', '/CN=Authority of the tests', '-days', '2', ...newKey];
  const files = ['-keyout', key, '-out', certificate];
  await must('openssl', ['req', '-x509', ...subject, ...files], { timeoutMs: imageMs });
  await docker('import', variable('base'), 'oratorio-test-debian');
  await build(directory, docker, images.base, 'base', certificate, [
    'FROM oratorio-test-debian',
    'COPY given /usr/local/share/ca-certificates/authority.crt',
    'RUN update-ca-certificates',
  ]);
  await build(directory, docker, images.gateway, 'gateway', await caddy211(), [
    `FROM ${images.base}`,
    'COPY given /usr/bin/caddy',
  ]);
}

async function build(
  directory: string,
  docker: (...args: string[]) => Promise<string>,
  image: string,
  name: string,
  given: string,
  lines: readonly string[],
): Promise<void> {
  const context = join(directory, 'contexts', name);
  mkdirSync(context, { recursive: true });
  copyFileSync(given, join(context, 'given'));
  writeFileSync(join(context, 'Dockerfile'), `${lines.join('\n')}\n`);
  await docker('build', '--quiet', '--network', 'none', '--tag', image, context);
}
