import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { deployFiles } from '../../scripts/deploy-files.ts';
import { root } from '../../scripts/toolchain.mjs';
import {
  allVariables,
  changeEnv,
  composeFile,
  newEnv,
  overlayFile,
  parseEnv,
  type VariableName,
} from '../../src/deploy/files/index.ts';
import { type Composition, composeConfig, compositionOf, type Service, writeStack } from './files/compose.ts';

t.jobs = 2;

type Values = Readonly<Partial<Record<VariableName, string>>>;

const secrets = {
  ORATORIO_AGENT_TOKEN: 'agent-token-0123456789',
  ORATORIO_DASHBOARD_PASSWORD: 'dash $HOME $x:-y $(id) "quoted" #word 100% `id`',
  ORATORIO_SERVICE_TOKEN: 'service-token-0123456789',
  ORATORIO_GITHUB_WEBHOOK_SECRET: 'webhook-secret-0123456789',
} satisfies Values;

const stacks: readonly { readonly title: string; readonly values: Values }[] = [
  { title: 'a demo', values: secrets },
  {
    title: 'a real provider, own ports, user, images and limits',
    values: {
      ...secrets,
      COMPOSE_PROJECT_NAME: 'oratorio-review-c0ffee',
      ORATORIO_UID: '1234',
      ORATORIO_GID: '2345',
      ORATORIO_IMAGE: `registry.example:5000/oratorio@sha256:${'a'.repeat(64)}`,
      ORATORIO_GATEWAY_IMAGE: `caddy:2.11.4-alpine@sha256:${'b'.repeat(64)}`,
      ORATORIO_BACKEND_PORT: '15087',
      ORATORIO_AGENT_PORT: '29100',
      ORATORIO_DASHBOARD_PORT: '28080',
      ORATORIO_AGENT_MEMORY: '6g',
      ORATORIO_BACKEND_MEMORY: '1g',
      ORATORIO_MODEL_ENDPOINT: 'https://models.example/v1?a=$b&c=#d',
      ORATORIO_MODEL: 'a model',
      ORATORIO_MODEL_API_KEY: 'sk-$$key{NOT}$',
    },
  },
];

const combinations = stacks.flatMap((stack) =>
  [false, true].flatMap((hasIngress) =>
    [false, true].map((isSelinux) => ({
      ...stack,
      hasIngress,
      isSelinux,
      title: `${stack.title}${hasIngress ? ', webhook ingress' : ''}${isSelinux ? ', SELinux' : ''}`,
    })),
  ),
);
type Combination = (typeof combinations)[number];

const base = 'docker-compose.yml';
const overlay = 'docker-compose.webhook.yml';

for (const combination of combinations) {
  t.test(`${combination.title} has the expected composition`, async (t) => {
    const directory = stackOf(t, combination);
    const ran = await composeConfig(directory, combination.hasIngress ? [base, overlay] : [base]);
    t.equal(ran.exitCode, 0, ran.stderr);
    t.equal(ran.stderr, '', 'without a warning');
    checkComposition(t, compositionOf(ran.stdout, directory), combination);
  });
}

for (const name of ['ORATORIO_AGENT_TOKEN', 'ORATORIO_GITHUB_WEBHOOK_SECRET']) {
  t.test(`refuses a stack without ${name}, by its name and with no value of another`, async (t) => {
    const directory = stackOf(t, { ...stacks[0], values: { ...secrets, [name]: '' }, isSelinux: false });
    const ran = await composeConfig(directory, [base, overlay]);
    t.not(ran.exitCode, 0);
    t.match(ran.stderr, `set ${name} in .env`);
    for (const value of Object.values(secrets)) t.notOk(ran.stderr.includes(value), 'no secret is told');
  });
}

t.test('a manual setup from the committed files is a stack (specification §4.4 rule 10)', async (t) => {
  const files = Object.fromEntries(deployFiles().map(([path, text]) => [path.replace('deploy/', ''), text]));
  const env = changeEnv(files['.env.example'] ?? '', secrets);
  const directory = join(t.testdir({}), 'stack');
  writeStack(directory, { ...files, '.env': env });
  const ran = await composeConfig(directory, [base, overlay]);
  t.equal(ran.exitCode, 0, ran.stderr);
  t.strictSame(Object.keys(compositionOf(ran.stdout, directory).services).sort(), [
    'agent',
    'backend',
    'webhook-gateway',
  ]);
});

t.test('a variable of the shell overrides .env', async (t) => {
  const directory = stackOf(t, { values: secrets, isSelinux: false });
  const ran = await composeConfig(directory, [base], { ORATORIO_AGENT_TOKEN: 'of-the-shell' });
  const { services } = compositionOf(ran.stdout, directory);
  t.equal(services['agent']?.environment['ORATORIO_AGENT_TOKEN'], 'of-the-shell');
});

function stackOf(t: Test, { values, isSelinux }: { readonly values: Values; readonly isSelinux: boolean }): string {
  const directory = join(t.testdir({}), 'stack');
  writeStack(directory, {
    [base]: composeFile({ isSelinux }),
    [overlay]: overlayFile({ isSelinux }),
    '.env': newEnv(values),
  });
  return directory;
}

function checkComposition(t: Test, { services, networks, volumes }: Composition, combination: Combination): void {
  const { hasIngress, isSelinux, values } = combination;
  const names = ['agent', 'backend', ...(hasIngress ? ['webhook-gateway'] : [])];
  t.strictSame(Object.keys(services).sort(), names);
  t.strictSame(Object.keys(networks).sort(), hasIngress ? ['core', 'ingress'] : ['core']);
  t.strictSame(Object.keys(volumes).sort(), [
    'agent-data',
    'backend-data',
    ...(hasIngress ? ['gateway-config', 'gateway-data'] : []),
  ]);
  const value = (name: VariableName): string => values[name] || (defaultOf(name) ?? '');
  const user = `${value('ORATORIO_UID')}:${value('ORATORIO_GID')}`;
  const label = isSelinux ? ':z' : '';
  const readOnly = isSelinux ? ':ro,z' : ':ro';
  const plain = (text: string) => text.replace(':ro:z', ':ro,z');

  const { agent, backend, 'webhook-gateway': gateway } = services;
  for (const service of Object.values(services)) checkHardened(t, service);

  t.match(agent, {
    image: value('ORATORIO_IMAGE'),
    user,
    command: ['app-server', '--workspace', '/workspace'],
    bound: [
      `127.0.0.1:${value('ORATORIO_DASHBOARD_PORT')}:8080`,
      `127.0.0.1:${value('ORATORIO_AGENT_PORT')}:9100`,
    ].sort(),
    pids_limit: 1024,
  });
  t.strictSame(Object.keys(agent?.['networks'] ?? {}), ['core']);
  t.strictSame(agent?.mounts.map(plain), [
    `./agent/config.json:/data/agent/config.json${readOnly}`,
    `./agent/home:/data/agent${label}`,
    `./workspace:/workspace${label}`,
    'agent-data:/data',
  ]);
  t.strictSame(agent?.environment, {
    HOME: '/data',
    ORATORIO_HOME: '/data/agent',
    ORATORIO_PUBLISHED_AS: `127.0.0.1:${value('ORATORIO_DASHBOARD_PORT')}`,
    ORATORIO_MODEL_ENDPOINT: value('ORATORIO_MODEL_ENDPOINT'),
    ORATORIO_MODEL: value('ORATORIO_MODEL'),
    ORATORIO_MODEL_API_KEY: value('ORATORIO_MODEL_API_KEY'),
    ORATORIO_AGENT_TOKEN: value('ORATORIO_AGENT_TOKEN'),
    ORATORIO_DASHBOARD_PASSWORD: value('ORATORIO_DASHBOARD_PASSWORD'),
  });
  t.ok(isMemory(agent?.['mem_limit'], value('ORATORIO_AGENT_MEMORY')));

  t.match(backend, {
    image: value('ORATORIO_IMAGE'),
    user,
    command: ['backend'],
    bound: [`127.0.0.1:${value('ORATORIO_BACKEND_PORT')}:5087`],
    depends_on: { agent: { condition: 'service_healthy' } },
    pids_limit: 512,
  });
  t.strictSame(Object.keys(backend?.['networks'] ?? {}).sort(), hasIngress ? ['core', 'ingress'] : ['core']);
  t.strictSame(backend?.mounts.map(plain), [
    `./oratorio.config.json:/etc/oratorio/oratorio.config.json${readOnly}`,
    `./secrets:/secrets${readOnly}`,
    `./workspace:/workspace${label}`,
    'backend-data:/data',
  ]);
  t.strictSame(backend?.environment, {
    HOME: '/data',
    ORATORIO_PUBLISHED_AS: `127.0.0.1:${value('ORATORIO_BACKEND_PORT')}`,
    ORATORIO_STATE_ROOT: '/data/backend',
    ORATORIO_CONFIG_PATH: '/etc/oratorio/oratorio.config.json',
    Oratorio__Server__Host: '0.0.0.0',
    Oratorio__Server__Port: '5087',
    Oratorio__Server__ServiceToken: value('ORATORIO_SERVICE_TOKEN'),
    Oratorio__Settings__Writable: 'false',
    Oratorio__AgentServer__AppServerUrl: 'ws://agent:9100/ws',
    Oratorio__AgentServer__AppServerToken: value('ORATORIO_AGENT_TOKEN'),
    Oratorio__AgentServer__HubDiscoveryEnabled: 'false',
    Oratorio__AgentServer__WorktreeRoot: '/workspace/.oratorio/worktrees',
    ...(hasIngress && {
      Oratorio__GitHub__WebhookSecret: value('ORATORIO_GITHUB_WEBHOOK_SECRET'),
      Oratorio__Server__TrustedProxies__0: 'webhook-gateway',
    }),
  });
  t.ok(isMemory(backend?.['mem_limit'], value('ORATORIO_BACKEND_MEMORY')));

  for (const [name, service] of Object.entries(services))
    if (name !== 'webhook-gateway') t.notOk(service['cap_add'], `${name} has no power of root`);
  if (gateway === undefined) return;
  t.match(gateway, {
    image: value('ORATORIO_GATEWAY_IMAGE'),
    user: '0:0',
    cap_add: ['NET_BIND_SERVICE'],
    bound: ['443:443', '80:80'],
    depends_on: { backend: { condition: 'service_healthy' } },
  });
  t.strictSame(Object.keys(gateway['networks'] ?? {}), ['ingress'], 'it cannot reach the agent server');
  t.strictSame(gateway.environment, { XDG_DATA_HOME: '/data', XDG_CONFIG_HOME: '/config' });
  t.strictSame(gateway.mounts.map(plain), [
    `./Caddyfile:/etc/caddy/Caddyfile${readOnly}`,
    'gateway-config:/config',
    'gateway-data:/data',
  ]);
}

function checkHardened(t: Test, service: Service): void {
  t.match(service, {
    init: true,
    read_only: true,
    tmpfs: ['/tmp', '/run'],
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    restart: 'unless-stopped',
    stop_grace_period: '45s',
    logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
    healthcheck: { interval: '5s', timeout: '5s', retries: 6, start_period: '30s' },
  });
  t.notOk(service['env_file'], 'a service sees what it is given, not the whole of .env');
  t.notOk(service['privileged']);
}

const defaultOf = (name: VariableName): string | null | undefined =>
  allVariables().find(([each]) => each === name)?.[1].default;

/** Version 1 repeats a limit unchanged, version 2 prints bytes. */
const isMemory = (limit: unknown, written: string): boolean =>
  String(limit) === written || Number(limit) === Number.parseInt(written, 10) * 1024 ** 3;

t.test('each secret is seen by the services of the table and by no other', (t) => {
  const files = [composeFile({ isSelinux: false }), overlayFile({ isSelinux: false })];
  for (const [name, { given, isSecret, default: value }] of allVariables()) {
    const guards = files.join('\n').split(`\${${name}:?set ${name} in .env}`).length - 1;
    if (value === null) t.equal(guards, Object.keys(given).length, `${name} must be set`);
    const places = files.join('\n').match(new RegExp(`\\$\\{${name}[:}]`, 'g'))?.length ?? 0;
    if (isSecret) t.equal(places, Object.keys(given).length, name);
    t.notOk(files.join('\n').includes(`\${${name}}`), 'no reference without a default or a guard');
  }
  t.end();
});

t.test('the variables of the composition and those of .env are the same', (t) => {
  const files = [composeFile({ isSelinux: false }), overlayFile({ isSelinux: false })].join('\n');
  const used = new Set([...files.matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name));
  const there = [...parseEnv(newEnv({})).values.keys()];
  t.strictSame([...used].sort(), there.filter((name) => name !== 'COMPOSE_PROJECT_NAME').sort());
  t.end();
});

t.test('the committed files equal the present results of the functions', (t) => {
  for (const [path, text] of deployFiles()) t.equal(readFileSync(join(root, path), 'utf8'), text, path);
  t.end();
});

t.test('both files are marked as ours, and the same each time', (t) => {
  for (const make of [composeFile, overlayFile]) {
    t.match(make({ isSelinux: false }), /^# Managed by oratorio server; checksum [0-9a-f]{64}\n/);
    t.equal(make({ isSelinux: false }), make({ isSelinux: false }));
    t.not(make({ isSelinux: false }), make({ isSelinux: true }));
  }
  t.end();
});
