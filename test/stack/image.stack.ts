import { copyFileSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import packageJson from '../../package.json' with { type: 'json' };
import { must } from '../deploy/must.ts';
import { run } from '../deploy/run.ts';
import { authorityOf } from './images.ts';
import { buildProduct, inspectImage } from './product.ts';
import { images, variable } from './variables.ts';

const runMs = 120_000;
const largest = 250_000_000;

/** Restrictions of the composition: an unknown user, a read-only file system, no capabilities, no network. */
const hardened = [
  ...['--rm', '--init', '--network', 'none', '--user', '1234:1234', '--read-only', '--tmpfs', '/tmp'],
  ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges:true'],
];
const inImage = (script: string, options: readonly string[] = hardened) =>
  must('docker', ['run', ...options, '--entrypoint', 'sh', images.product, '-ec', script], { timeoutMs: runMs });

t.before(() => buildProduct());

t.test('the same checkout makes the same layers', async (t) => {
  const { layers } = await inspectImage(images.product);
  await buildProduct('oratorio:again', { isFresh: true });
  t.same((await inspectImage('oratorio:again')).layers, layers);
  await must('docker', ['rmi', 'oratorio:again'], { timeoutMs: runMs });
});

t.test('the image is small, names its source, and runs as an unknown user by default', async (t) => {
  const { size, user, labels } = await inspectImage(images.product);
  t.ok(size <= largest, `${Math.round(size / 1_000_000)} MB`);
  t.equal(user, '10001:10001');
  t.match(labels, {
    'org.opencontainers.image.version': packageJson.version,
    'org.opencontainers.image.revision': /^([0-9a-f]{40}(-dirty)?|unknown)$/,
  });
});

t.test('a review has its programs as an unknown user on a read-only file system', async (t) => {
  t.match(
    await must('docker', ['run', ...hardened, images.product, '--version'], { timeoutMs: runMs }),
    packageJson.version,
  );
  const programs = await inImage('node --version; git --version; rg --version | head -1; tini --version; id -u');
  t.match(programs, /^v22\.[\s\S]*git version [\s\S]*ripgrep [\s\S]*tini [\s\S]*\n1234\n$/);
  const git = await inImage(
    'cd /tmp && git init -q here && cd here && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --oneline',
  );
  t.match(git, /one/, 'git works without what was left out of it');
  const written = await run(
    'docker',
    ['run', ...hardened, '--entrypoint', 'sh', images.product, '-c', 'echo > /app/x'],
    {
      timeoutMs: runMs,
    },
  );
  t.not(written.exitCode, 0);
});

t.test('an agent runs a command in the unmodified image', async (t) => {
  const said = await inImage(
    `export HOME=/tmp/home; mkdir -p $HOME /tmp/shop; cd /tmp/shop
     oratorio up --init --no-follow >&2
     oratorio exec --yes 'run: printf done-%s in-the-image'
     oratorio hub stop >&2`,
  );
  t.match(said, 'done-in-the-image');
});

t.test('each user can write to a new volume at /data or /workspace', async (t) => {
  const volumes = ['--volume', '/data', '--volume', '/workspace'];
  t.equal(
    await inImage('echo 1 > /data/a; echo 2 > /workspace/b; cat /data/a /workspace/b', [...hardened, ...volumes]),
    '1\n2\n',
  );
});

t.test('the image has no tools of builds and tests, and no program that becomes root', async (t) => {
  const everything = [...hardened, '--user', '0:0', '--cap-add', 'DAC_READ_SEARCH'];
  t.equal(await inImage('find / -xdev -type f -perm /6000', everything), '');
  const found = await inImage(
    `for each in npm npx yarn corepack tsc gcc make; do command -v $each || true; done
     find /app \\( -name '*.ts' -o -name '*.map' -o -name 'typescript' -o -name 'tap' -o -name 'test' \\)
     find /app -type d -perm /022; find /app -type f -perm /022; find /app ! -user 0`,
  );
  t.equal(found, '');
  const packages = await inImage(
    "cd /app && node -e \"require('ws'); import('uWebSockets.js').then(() => console.log('loaded'))\"",
  );
  t.equal(packages, 'loaded\n');
});

t.test('certificates of a company can be added to it', async (t) => {
  const directory = mkdtempSync(join(variable('directory'), 'derived-'));
  copyFileSync(authorityOf(variable('directory')).certificate, join(directory, 'company.crt'));
  const lines = ['USER root', 'COPY company.crt /usr/local/share/ca-certificates/', 'RUN update-ca-certificates'];
  writeFileSync(join(directory, 'Dockerfile'), [`FROM ${images.product}`, ...lines, 'USER 10001:10001', ''].join('\n'));
  await must('docker', ['build', '--quiet', '--network', 'none', '--tag', 'oratorio:company', directory], {
    timeoutMs: runMs,
  });
  await must('docker', ['rmi', 'oratorio:company'], { timeoutMs: runMs });
  t.match(await inImage('env'), 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt');
});

t.test('the image carries its bill of materials', async (t) => {
  const bill = JSON.parse(await inImage('cat /app/sbom.cdx.json'));
  t.match(bill, {
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'oratorio', version: packageJson.version } },
  });
  const purls: string[] = bill.components.map(({ purl }: { purl: string }) => purl);
  for (const name of ['valibot', 'xstate', 'ws', 'preact', '%40octokit/core'])
    t.ok(
      purls.some((purl) => purl.startsWith(`pkg:npm/${name}@`)),
      name,
    );
  t.ok(purls.some((purl) => purl.startsWith('pkg:generic/node@22.')));
  t.notOk(
    purls.some((purl) => /tap@|typescript|playwright|win32|darwin/.test(purl)),
    'nothing else',
  );
  t.equal(new Set(bill.components.map((each: { 'bom-ref': string }) => each['bom-ref'])).size, purls.length);
});
