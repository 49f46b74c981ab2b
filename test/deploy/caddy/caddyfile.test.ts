import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { DeployError } from '../../../src/deploy/errors.ts';
import { acmeEmail } from '../../../src/deploy/files/acme-email.ts';
import {
  type CaddyfileOptions,
  type Certificates,
  caddyfile,
  gatewayText,
} from '../../../src/deploy/files/caddyfile.ts';
import { ownershipOf } from '../../../src/deploy/files/marker.ts';
import { classifyHost, type PublicHost } from '../../../src/deploy/host/index.ts';
import { type Ran, run } from '../run.ts';
import { caddy26, caddy211 } from '../tools.ts';
import { caddyEnvironment } from './gateway.ts';
import { authorityOf, hosts } from './hosts.ts';

const directories = {
  production: 'https://acme-v02.api.letsencrypt.org/directory',
  staging: 'https://acme-staging-v02.api.letsencrypt.org/directory',
} as const;
const email = 'ops+caddy@example.com';
const versions = [
  { version: '2.6', find: caddy26 },
  { version: '2.11', find: caddy211 },
] as const;
const allCertificates = ['production', 'staging', 'internal'] as const satisfies readonly Certificates[];
const everything: readonly CaddyfileOptions[] = Object.values(hosts).flatMap((host) =>
  allCertificates.flatMap((certificates) => [email, null].map((acmeEmail) => ({ host, certificates, acmeEmail }))),
);
const nameOf = ({ host, certificates, acmeEmail }: CaddyfileOptions): string =>
  `${host.kind}, ${certificates}, ${acmeEmail === null ? 'no e-mail' : 'with e-mail'}`;

/** Asks Caddy about a file. */
async function ask(t: Test, find: () => Promise<string>, args: readonly string[], text: string): Promise<Ran> {
  const directory = mkdtempSync(join(t.testdir({}), 'caddy-'));
  const file = join(directory, 'Caddyfile');
  writeFileSync(file, text);
  // The process ends before its memory has to be collected, which takes a fifth of its processor time.
  const env = { ...caddyEnvironment(directory), GOGC: 'off' };
  return run(await find(), [...args, file], { timeoutMs: 60_000, env });
}

/**
 * Files as Caddy formats them, in one process: one for each would cost as much as all else.
 */
async function formatted(t: Test, find: () => Promise<string>, texts: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await ask(t, find, ['fmt'], texts.map((text) => `${text.trimEnd()}\n${separator}\n`).join('\n'));
  return stdout.split(separator).map((text) => text.trim());
}
const separator = '# Between two files.';

const adapt = (t: Test, find: () => Promise<string>, text: string): Promise<Ran> =>
  ask(t, find, ['adapt', '--validate', '--adapter', 'caddyfile', '--config'], text);

/** Parts of Caddy's own configuration that these tests read. */
interface Adapted {
  readonly admin: { readonly disabled: boolean };
  readonly apps: {
    readonly http: {
      readonly http_port?: number;
      readonly https_port?: number;
      readonly servers: Readonly<Record<string, { readonly listen: readonly string[] }>>;
    };
    readonly tls: {
      readonly automation: {
        readonly policies: readonly { readonly subjects?: readonly string[]; readonly issuers: readonly unknown[] }[];
      };
    };
  };
}

/** Every object of a document that has a `key` with this value. */
function objectsWith(value: unknown, key: string, wanted: string): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap((each) => objectsWith(each, key, wanted));
  const own = value as Record<string, unknown>;
  return own[key] === wanted ? [own, ...inner] : inner;
}

for (const { version, find } of versions) {
  t.test(`Caddy ${version} would format no file otherwise`, async (t) => {
    const texts = everything.map((options) => caddyfile(options));
    const found = await formatted(t, find, texts);
    for (const [index, options] of everything.entries())
      t.equal(found[index], texts[index]?.trim(), `${nameOf(options)} is formatted already`);
  });

  for (const options of everything) {
    const isServed = version !== '2.6' || options.host.kind === 'dns' || options.certificates === 'internal';

    t.test(`Caddy ${version} ${isServed ? 'takes' : 'refuses'} the file for ${nameOf(options)}`, async (t) => {
      const text = caddyfile(options);
      t.equal(ownershipOf(text), 'ours');
      const adapted = await adapt(t, find, text);
      if (!isServed) {
        t.equal(adapted.exitCode, 1);
        return t.match(adapted.stderr, 'unrecognized ACME issuer property: profile');
      }
      t.equal(adapted.exitCode, 0, adapted.stderr);
      const config = JSON.parse(adapted.stdout) as Adapted;
      t.equal(config.admin.disabled, true);
      checkIssuer(t, config, options);
      checkRoutes(t, config, options);
    });
  }

  t.test(`Caddy ${version}: other ports change only where the gateway listens`, async (t) => {
    const options = { host: hosts.dns, acmeEmail: null, certificates: 'internal' } as const;
    const usual = (await adapt(t, find, gatewayText(options))).stdout;
    const moved = (await adapt(t, find, gatewayText({ ...options, ports: { http: 8080, https: 4443 } }))).stdout;
    t.match(usual, '":443"');
    const back = JSON.parse(moved.replaceAll('":4443"', '":443"').replaceAll('":8080"', '":80"')) as Adapted;
    const { http_port, https_port, ...http } = back.apps.http;
    t.strictSame([http_port, https_port], [8080, 4443]);
    t.strictSame({ ...back, apps: { ...back.apps, http } }, JSON.parse(usual));
  });
}

/** Checks that there is one issuer and no other. */
function checkIssuer(t: Test, config: Adapted, { host, certificates, acmeEmail }: CaddyfileOptions): void {
  // That of 2.6 for sites without a name is empty: no certificate is ever asked for by it.
  const policies = config.apps.tls.automation.policies.filter((policy) => Object.keys(policy).length > 0);
  t.equal(policies.length, 1);
  t.strictSame(policies[0]?.subjects, [host.name]);
  const acme = {
    ca: certificates === 'internal' ? undefined : directories[certificates],
    ...(acmeEmail === null ? {} : { email: acmeEmail }),
    ...(host.kind === 'dns' ? {} : { profile: 'shortlived', challenges: { 'tls-alpn': { disabled: true } } }),
    module: 'acme',
  };
  t.strictSame(policies[0]?.issuers, [certificates === 'internal' ? { module: 'internal' } : acme]);
  const text = JSON.stringify(config);
  t.notMatch(text, /zerossl/i);
  t.equal(text.includes('"default_sni"'), host.kind !== 'dns');
  if (host.kind !== 'dns') t.match(text, `"default_sni":"${host.name}"`);
}

/** One way to the backend, on the HTTPS side, with both conditions. */
function checkRoutes(t: Test, config: Adapted, { host }: CaddyfileOptions): void {
  const { servers } = config.apps.http;
  t.strictSame(
    Object.values(servers)
      .flatMap(({ listen }) => listen)
      .sort(),
    [':443', ':80'],
  );
  const proxies = objectsWith(config, 'handler', 'reverse_proxy');
  t.equal(proxies.length, 1);
  t.match(proxies[0], { upstreams: [{ dial: 'backend:5087' }] });
  const encrypted = Object.values(servers).find(({ listen }) => listen.includes(':443'));
  t.equal(objectsWith(encrypted, 'handler', 'reverse_proxy').length, 1);
  for (const server of Object.values(servers)) {
    const protocols = server === encrypted ? ['h1', 'h2'] : ['h1'];
    t.match(server, { protocols, read_timeout: 15e9, read_header_timeout: 10e9, max_header_bytes: 16_384 });
  }
  t.match(JSON.stringify(encrypted), `{"host":["${host.kind === 'ipv6' ? host.name : authorityOf(host)}"]}`);
  t.match(JSON.stringify(encrypted), '"method":["POST"]');
  t.match(objectsWith(config, 'handler', 'request_body'), [{ max_size: 26_214_400 }]);
  t.strictSame(objectsWith(config, 'handler', 'file_server'), []);
}

/** Names and addresses that people may be given by the DNS or a provider. */
const label = fc.stringMatching(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/);
const publicHost: fc.Arbitrary<PublicHost> = fc
  .oneof(
    fc.tuple(label, label, fc.constantFrom('com', 'org', 'dev', 'xn--p1ai')).map((labels) => labels.join('.')),
    fc.constantFrom('bücher.de', 'MÜNCHEN.de', 'faß.de', '例え.jp'),
    fc.ipV4(),
    fc.ipV6(),
  )
  .map((text) => classifyHost(text))
  .filter((verdict) => verdict.ok)
  .map(({ host }) => host);
const address = fc
  .tuple(fc.stringMatching(/^[A-Za-z0-9_+-]{1,20}(?:\.[a-z0-9]{1,5})?$/), label, fc.constantFrom('com', 'de'))
  .map(([local, name, top]) => `${local}@${name}.${top}`);

t.test('for every accepted host and e-mail exactly one route leads to the backend', async (t) => {
  const property = fc.asyncProperty(
    publicHost,
    fc.option(address),
    fc.constantFrom(...allCertificates),
    async (...parts) => {
      const [host, acmeEmail, certificates] = parts;
      const adapted = await adapt(t, caddy211, caddyfile({ host, acmeEmail, certificates }));
      if (adapted.exitCode !== 0) throw new Error(adapted.stderr);
      const config = JSON.parse(adapted.stdout) as Adapted;
      t.equal(objectsWith(config, 'handler', 'reverse_proxy').length, 1);
      checkIssuer(t, config, { host, acmeEmail, certificates });
    },
  );
  await fc.assert(property, { numRuns: 15 });
});

t.test('an e-mail address is taken unchanged, or refused before it gets into the file', async (t) => {
  const long = `${'a'.repeat(64)}@${'b'.repeat(63)}.com`;
  const fine = ['ops@example.com', 'a.b-c_d+e@mail.example.co', 'O@X.IO', long, 'ops@xn--bcher-kva.example'];
  for (const text of fine) t.equal(acmeEmail(text), text);
  const wrong = [
    ...['', 'ops', '@example.com', 'ops@', 'ops@localhost', 'ops@example', 'ops@.com', 'ops@a..com', 'a@b@c.com'],
    ...['.ops@example.com', 'ops.@example.com', 'o..ps@example.com', 'ops@-a.com', 'ops@a-.com', 'ops@1.2.3.4'],
    ...[
      'ops@[9.9.9.9]',
      '"o ps"@example.com',
      'ops @example.com',
      ' ops@example.com',
      'ops@example.com ',
      'ops@example.com.',
    ],
    ...[
      'ops@example.com\n',
      'ops@example.com\n}\nevil.test {',
      'ops@example.com}',
      '{env.PATH}@example.com',
      '{$HOME}@a.com',
    ],
    ...[
      'ops#@example.com',
      'ops`@example.com',
      "ops'@example.com",
      'ops\\@example.com',
      'ops%@example.com',
      'öps@a.com',
    ],
    ...['ops@bücher.example', 'Ops <ops@example.com>', 'mailto:ops@example.com', 'a@b.com,c@d.com', `a${long}`],
    ...[`a@${'b.'.repeat(126)}com`],
  ];
  for (const text of wrong) {
    const options = { host: hosts.dns, acmeEmail: text, certificates: 'production' } as const;
    t.throws(() => caddyfile(options), { name: 'DeployError', code: 'invalidInput' }, JSON.stringify(text));
  }
});

t.test('text that Caddy would read as more than an address is refused', async () => {
  const anything = fc.oneof(
    fc.string({ unit: 'binary-ascii' }),
    fc.string().map((text) => `ops@example.com${text}`),
  );
  const harmless = /^[A-Za-z0-9_+.-]+@[A-Za-z0-9.-]+$/;
  const property = fc.property(anything, (text) => {
    try {
      return harmless.test(acmeEmail(text));
    } catch (error) {
      return (
        error instanceof DeployError &&
        error.code === 'invalidInput' &&
        (text.length < 20 || !error.message.includes(text))
      );
    }
  });
  fc.assert(property, { numRuns: 500 });
});

t.test('a host that was not classified is refused, and so is an odd upstream', async (t) => {
  const base = { acmeEmail: null, certificates: 'production' } as const;
  const made: readonly [PublicHost['kind'], string][] = [
    ...(
      ['', '*', 'a b.com', 'a.com {', 'a.com, b.com', 'a.com:80', 'a.com/x', 'A.com', 'localhost', '9.9.9.9'] as const
    ).map((name): [PublicHost['kind'], string] => ['dns', name]),
    ['ipv4', 'a.com'],
    ['ipv4', '010.0.0.1'],
    ['ipv4', '2600::1'],
    ['ipv6', '[2600::1]'],
    ['ipv6', '2600::1%eth0'],
    ['ipv6', '9.9.9.9'],
  ];
  for (const [kind, name] of made) {
    const host = { kind, name, display: name, origin: '' };
    t.throws(() => caddyfile({ ...base, host }), { name: 'DeployError', code: 'hostRefused' }, `${kind} ${name}`);
  }
  for (const upstream of [
    '',
    'backend',
    'backend:',
    'a b:1',
    'unix//run/x',
    'http://backend:1',
    'a:1 b:2',
    '{env.X}:1',
  ])
    t.throws(() => caddyfile({ ...base, host: hosts.dns, upstream }), { code: 'invalidInput' }, upstream);
});

t.test('the committed file of a manual setup equals the file of the command without its mark', async (t) => {
  const committed = readFileSync(new URL('../../../deploy/Caddyfile', import.meta.url), 'utf8');
  const verdict = classifyHost('reviews.example.com', { allowTestNames: true });
  if (!verdict.ok) throw new Error(verdict.message);
  const text = gatewayText({ host: verdict.host, acmeEmail: null, certificates: 'production' });
  t.equal(committed.replace(/^(?:#.*\n)+/, ''), text);
  t.equal(ownershipOf(committed), 'foreign', 'the command never overwrites it');
  for (const { find } of versions) {
    t.equal((await ask(t, find, ['fmt'], committed)).stdout.trimEnd(), committed.trimEnd());
    t.equal((await adapt(t, find, committed.replaceAll('reviews.example.com', 'hooks.mine.dev'))).exitCode, 0);
  }
});
