// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the placeholders of configuration files look like those of TypeScript
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import {
  changeTrusted,
  initWorkspace,
  loadConfig,
  requestedFiles,
  requestedSettings,
  revokeTrust,
  trustedWorkspaces,
  trustFile,
  trustWorkspace,
  workspaceTrust,
} from '../../src/config/index.ts';
import { canBecomeOther, otherUid } from '../other-user.ts';
import { program } from '../programs.ts';

const run = promisify(execFile);

interface Place {
  readonly home: string;
  readonly workspace: string;
  write(settings: unknown): void;
}

/** A home and a clone whose `.oratorio/config.json` is `settings`. */
function place(t: Test, settings: unknown, user: unknown = {}): Place {
  const base = t.testdir({ home: { 'config.json': JSON.stringify(user) }, clone: { '.oratorio': {} } });
  const [home, workspace] = [join(base, 'home'), join(base, 'clone')];
  const write = (changed: unknown) => {
    const text = typeof changed === 'string' ? changed : JSON.stringify(changed);
    writeFileSync(join(workspace, '.oratorio', 'config.json'), text);
  };
  write(settings);
  return { home, workspace, write };
}

const endpoint = { EndPoint: 'http://127.0.0.1:9/v1', Model: 'm' };

t.test(
  'a workspace is restricted until the user trusts it, and again when its sensitive settings change',
  async (t) => {
    const at = place(t, endpoint);
    const load = () => loadConfig({ ...at, env: {} });
    t.same(workspaceTrust(at), { trust: 'restricted', restrictedSettings: ['EndPoint'] });
    t.match(load(), {
      trust: 'restricted',
      restrictedSettings: ['EndPoint'],
      config: { EndPoint: '', Model: 'm' },
      warnings: [
        `${at.workspace} is restricted: EndPoint of its config.json is ignored. To review and allow: oratorio trust ${at.workspace}`,
      ],
    });
    t.same([...requestedSettings(at.workspace)], [['EndPoint', endpoint.EndPoint]]);
    trustWorkspace(at);
    t.equal(statSync(trustFile(at.home)).mode & 0o777, 0o600);
    t.match(load(), {
      trust: 'trusted',
      restrictedSettings: [],
      config: { EndPoint: endpoint.EndPoint },
      warnings: [],
    });
    t.match(trustedWorkspaces(at.home).workspaces, [{ path: at.workspace, trust: 'trusted' }]);

    at.write({ model: 'other', endpoint: endpoint.EndPoint, $schema: 'x' });
    t.match(
      load(),
      { trust: 'trusted', config: { Model: 'other' } },
      'case, order and harmless settings do not matter',
    );
    at.write({ ...endpoint, Hooks: { SessionStart: [] } });
    t.match(
      load(),
      { trust: 'restricted', restrictedSettings: ['EndPoint', 'Hooks'] },
      'nor does a name reserved for later slip in',
    );
    at.write({ ...endpoint, EndPoint: 'http://127.0.0.1:10/v1' });
    t.match(load(), { trust: 'restricted', restrictedSettings: ['EndPoint'], config: { EndPoint: '' } });
    t.match(trustedWorkspaces(at.home).workspaces, [{ trust: 'restricted' }]);
    at.write(endpoint);
    t.equal(workspaceTrust(at).trust, 'trusted', 'the agreement was to these values');

    t.equal(revokeTrust(at), true);
    t.equal(revokeTrust(at), false);
    t.equal(workspaceTrust(at).trust, 'restricted');
  },
);

t.test('a workspace without sensitive settings is restricted without a warning', async (t) => {
  const at = place(t, { Model: 'm', Api: {} });
  t.match(loadConfig({ ...at, env: {} }), { trust: 'restricted', restrictedSettings: [], warnings: [] });
  t.match(loadConfig({ home: at.home, env: {} }), { trust: 'trusted', restrictedSettings: [] });
});

t.test('regression: C1 init trusts a workspace that it creates, never an existing .oratorio', async (t) => {
  const at = place(t, endpoint);
  initWorkspace(at.workspace, { ORATORIO_HOME: at.home });
  t.equal(workspaceTrust(at).trust, 'restricted');
  const made = join(at.home, '..', 'made');
  initWorkspace(made, { ORATORIO_HOME: at.home });
  t.equal(workspaceTrust({ home: at.home, workspace: made }).trust, 'trusted');
});

t.test('regression: C1 init trusts an empty directory, and none that has anything in it', (t) => {
  const { home } = place(t, endpoint);
  const base = t.testdir({
    empty: {},
    file: { 'a.txt': '' },
    hidden: { '.envrc': '' },
    clone: { '.git': { config: '' } },
    venv: { '.venv': { bin: { activate: '' } } },
  });
  const trusted = readdirSync(base).filter((name) => {
    const workspace = join(base, name);
    initWorkspace(workspace, { ORATORIO_HOME: home });
    initWorkspace(workspace, { ORATORIO_HOME: home });
    return workspaceTrust({ home, workspace }).trust === 'trusted';
  });
  t.strictSame(trusted, ['empty']);
  t.end();
});

t.test('trust belongs to the canonical path', async (t) => {
  const at = place(t, endpoint);
  trustWorkspace(at);
  const link = join(at.home, 'link');
  symlinkSync(at.workspace, link);
  t.equal(workspaceTrust({ home: at.home, workspace: link }).trust, 'trusted');
  const copy = join(at.home, 'copy');
  mkdirSync(join(copy, '.oratorio'), { recursive: true });
  writeFileSync(join(copy, '.oratorio', 'config.json'), JSON.stringify(endpoint));
  t.equal(workspaceTrust({ home: at.home, workspace: copy }).trust, 'restricted', 'a copy is another workspace');
});

t.test('trust belongs to the owner of the workspace', async (t) => {
  const at = place(t, endpoint);
  trustWorkspace(at);
  t.equal(workspaceTrust(at).trust, 'trusted');
  if (canBecomeOther) chownSync(join(at.workspace, '.oratorio'), otherUid, otherUid);
  else {
    const text = readFileSync(trustFile(at.home), 'utf8');
    writeFileSync(trustFile(at.home), text.replace(/"owner": \d+/, `"owner": ${otherUid}`));
  }
  t.equal(workspaceTrust(at).trust, 'restricted');
  if (!canBecomeOther) return;
  t.throws(() => trustWorkspace(at), { name: 'TrustError', message: new RegExp(`another user \\(uid ${otherUid}\\)`) });
});

t.test('a directory without .oratorio cannot be trusted, nor one whose .oratorio is a link', async (t) => {
  const at = place(t, endpoint);
  t.throws(() => trustWorkspace({ home: at.home, workspace: at.home }), {
    name: 'TrustError',
    message: /not a workspace/,
  });
  const linked = join(at.home, 'linked');
  mkdirSync(linked);
  symlinkSync(join(at.workspace, '.oratorio'), join(linked, '.oratorio'));
  t.throws(() => trustWorkspace({ home: at.home, workspace: linked }), {
    name: 'TrustError',
    message: /symbolic link/,
  });
  t.throws(() => loadConfig({ home: at.home, workspace: linked, env: {} }), {
    name: 'ConfigError',
    message: /symbolic link/,
  });
});

t.test('settings changed while the question was open are not trusted', async (t) => {
  const at = place(t, endpoint);
  const seen = requestedSettings(at.workspace);
  at.write({ EndPoint: 'http://evil.example' });
  t.throws(() => trustWorkspace(at, seen), { name: 'TrustError', message: /changed while/ });
  t.equal(workspaceTrust(at).trust, 'restricted');
  trustWorkspace(at, requestedSettings(at.workspace));
  t.equal(workspaceTrust(at).trust, 'trusted');
});

t.test('a damaged trust.json trusts no workspace, is named, and is not overwritten', async (t) => {
  const at = place(t, endpoint);
  trustWorkspace(at);
  const file = trustFile(at.home);
  const good = readFileSync(file, 'utf8');
  for (const text of ['{', '[]', '{"version":2,"workspaces":[]}', good.replace('"path"', '"paht"'), '']) {
    writeFileSync(file, text);
    const { trust, warnings } = loadConfig({ ...at, env: {} });
    t.equal(trust, 'restricted', text);
    t.match(warnings.join('\n'), `${file} is not`);
    t.throws(() => trustWorkspace(at), { name: 'TrustError', message: /Correct or remove/ });
    t.equal(readFileSync(file, 'utf8'), text);
  }
  writeFileSync(file, good);
  t.equal(workspaceTrust(at).trust, 'trusted');
});

t.test('concurrent decisions are all recorded, also when a writer is killed', async (t) => {
  const at = place(t, endpoint);
  const workspaces = Array.from({ length: 6 }, (_, index) => join(at.home, `w${index}`));
  for (const workspace of workspaces) mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  const dead = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
  writeFileSync(`${trustFile(at.home)}.lock`, `${dead} abc`);
  const args = ['--conditions=development', program('test/fixtures/process/trusts-workspaces.mjs'), at.home];
  await Promise.all([0, 2, 4].map((from) => run(process.execPath, [...args, ...workspaces.slice(from, from + 2)])));
  t.same(
    trustedWorkspaces(at.home).workspaces.map(({ path, trust }) => [path, trust]),
    workspaces.map((path) => [path, 'trusted']),
  );
  t.same(
    readdirSync(at.home).filter((name) => /lock|tmp/.test(name)),
    [],
    'nothing is left of the writing',
  );
});

t.test(
  'a change of the user’s own client keeps a trusted workspace trusted, and a restricted one restricted',
  async (t) => {
    const at = place(t, endpoint);
    const after = { ...endpoint, McpServers: { a: { transport: 'stdio', command: 'x' } } };
    const change = () => changeTrusted(at, { before: endpoint, after }, async () => at.write(after));
    await t.rejects(change(), { name: 'TrustError' });
    t.equal(readFileSync(join(at.workspace, '.oratorio', 'config.json'), 'utf8'), JSON.stringify(endpoint));
    trustWorkspace(at);
    await change();
    t.match(loadConfig({ ...at, env: {} }), { trust: 'trusted', config: { McpServers: { a: { command: 'x' } } } });
  },
);

t.test('regression: M7 a configuration that is not a plain file of this user is refused and named', async (t) => {
  const at = place(t, endpoint);
  const file = join(at.workspace, '.oratorio', 'config.json');
  const load = () => loadConfig({ ...at, env: {} });
  trustWorkspace(at);
  t.equal(load().config.Model, 'm');
  const refused = (message: RegExp) => {
    t.throws(load, { name: 'ConfigError', file, message });
    t.same(workspaceTrust(at), { trust: 'restricted', restrictedSettings: [] });
  };
  at.write(`{"Model":"${'x'.repeat(1_048_576)}"}`);
  refused(/at most 1 MiB, but is larger/);
  execFileSync('rm', [file]);
  symlinkSync('/dev/zero', file);
  refused(/symbolic link/);
  execFileSync('rm', [file]);
  execFileSync('mkfifo', [file]);
  refused(/another kind of file/);
  execFileSync('rm', [file]);
  at.write(endpoint);
  t.equal(load().config.Model, 'm');
  const moved = join(at.home, 'elsewhere.json');
  writeFileSync(moved, '{"Model":"of the user"}');
  execFileSync('rm', [join(at.home, 'config.json')]);
  symlinkSync(moved, join(at.home, 'config.json'));
  t.equal(loadConfig({ home: at.home, env: {} }).config.Model, 'of the user', 'the user’s own file may be a link');
});

t.test('regression: C2 a workspace sees only the variables that the user passes on', async (t) => {
  const env = { SECRET: 'hush-hush', PASSED: 'for-all' };
  const theirs = { Model: '${SECRET}' };
  const mine = { ApiKey: '${SECRET}', Supervision: { PassEnvironment: ['PASSED'] } };
  const at = place(t, theirs, mine);
  trustWorkspace(at);
  const listed = /SECRET, which Supervision\.PassEnvironment of your own config\.json does not list/;
  t.throws(() => loadConfig({ ...at, env }), { name: 'ConfigError', keyPath: 'Model', message: listed });
  at.write({ Model: '${PASSED}', Api: { ApiKey: '${PASSED}' } });
  trustWorkspace(at);
  t.match(loadConfig({ ...at, env }).config, { Model: 'for-all', ApiKey: 'hush-hush', Api: { ApiKey: 'for-all' } });
  t.throws(() => loadConfig({ ...at, env: { SECRET: 'x' } }), { message: /PASSED, which is not set/ });
  // Variables that an MCP server names are the same variables.
  at.write({
    McpServers: {
      local: { transport: 'stdio', command: 'x', envVars: ['SECRET', 'PASSED'] },
      web: {
        transport: 'streamableHttp',
        url: 'http://127.0.0.1:9',
        bearerTokenEnvVar: 'SECRET',
        envHttpHeaders: { 'x-a': 'SECRET', 'x-b': 'PASSED' },
      },
    },
  });
  trustWorkspace(at);
  const { config, warnings } = loadConfig({ ...at, env });
  t.match(config.McpServers, { local: { envVars: ['PASSED'] }, web: { envHttpHeaders: { 'x-b': 'PASSED' } } });
  t.notMatch(JSON.stringify(config.McpServers), 'SECRET');
  t.equal(warnings.length, 3);
});

t.test('regression: C2 a key stays with the address of its own file', async (t) => {
  const cases: [string, unknown, unknown, { EndPoint: string; ApiKey: string }, RegExp?][] = [
    [
      'both of the user',
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      {},
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
    ],
    [
      'a workspace endpoint gets no user key',
      { ApiKey: 'key-of-the-user' },
      { EndPoint: 'http://w' },
      { EndPoint: 'http://w', ApiKey: '' },
      /not sent there/,
    ],
    [
      'nor the key of another endpoint',
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      { EndPoint: 'http://w' },
      { EndPoint: 'http://w', ApiKey: '' },
      /not sent there/,
    ],
    [
      'an emptied endpoint is another one',
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      { EndPoint: '' },
      { EndPoint: '', ApiKey: '' },
      /not sent there/,
    ],
    [
      'both of the workspace',
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      { EndPoint: 'http://w', ApiKey: 'key-of-the-workspace' },
      { EndPoint: 'http://w', ApiKey: 'key-of-the-workspace' },
    ],
    [
      'a user endpoint gets no workspace key',
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      { ApiKey: 'key-of-the-workspace' },
      { EndPoint: 'http://u', ApiKey: 'key-of-the-user' },
      /would receive it/,
    ],
    [
      'nor where the user has none',
      { EndPoint: 'http://u' },
      { ApiKey: 'key-of-the-workspace' },
      { EndPoint: 'http://u', ApiKey: '' },
      /would receive it/,
    ],
    [
      'the provider’s own address belongs to no file',
      { ApiKey: 'key-of-the-user' },
      { ApiKey: 'key-of-the-workspace' },
      { EndPoint: '', ApiKey: 'key-of-the-workspace' },
    ],
  ];
  for (const [name, user, workspace, expected, warning] of cases) {
    const at = place(t, workspace, user);
    trustWorkspace(at);
    const { config, warnings } = loadConfig({ ...at, env: {} });
    t.match(config, expected, name);
    t.equal(warnings.length, warning ? 1 : 0, name);
    if (warning) t.match(warnings[0], warning, name);
    t.notMatch(warnings.join(), /key-of-the/, 'no key is in a warning');
  }
});

t.test('regression: C2 two definitions of one MCP server are never merged', async (t) => {
  const mine = {
    transport: 'streamableHttp',
    url: 'http://mine.example',
    httpHeaders: { Authorization: 'Bearer mine' },
  };
  const other = { transport: 'stdio', command: 'x' };
  const at = place(
    t,
    { McpServers: { x: { transport: 'streamableHttp', url: 'http://theirs.example' } } },
    { McpServers: { x: mine, y: other } },
  );
  t.match(loadConfig({ ...at, env: {} }).config.McpServers, { x: mine, y: other }, 'restricted: the user’s own');
  trustWorkspace(at);
  t.match(loadConfig({ ...at, env: {} }).config.McpServers, {
    x: { url: 'http://theirs.example', httpHeaders: {} },
    y: other,
  });
  t.notMatch(JSON.stringify(loadConfig({ ...at, env: {} }).config), 'Bearer mine');
});

t.test('regression: C4 trust ends when a file of the workspace changes that its settings start', async (t) => {
  const base = t.testdir({
    home: {},
    ws: { '.oratorio': {}, bin: { server: 'one' }, 'hook.sh': 'one', 'notes.md': 'one' },
  });
  const at = { home: join(base, 'home'), workspace: join(base, 'ws') };
  const file = (name: string) => join(at.workspace, name);
  writeFileSync(
    file('.oratorio/config.json'),
    JSON.stringify({
      McpServers: { one: { command: './server', args: ['--notes', 'notes.md'], cwd: 'bin' } },
      Hooks: { TurnEnd: [{ Command: 'sh "hook.sh"; ./later' }] },
    }),
  );
  const trust = () => workspaceTrust(at).trust;
  chmodSync(file('bin/server'), 0o755);
  for (const changed of ['bin/server', 'hook.sh', 'later']) {
    trustWorkspace(at);
    t.match([...requestedFiles(at.workspace).keys()], ['bin/server', 'hook.sh']);
    t.equal(trust(), 'trusted');
    writeFileSync(file('notes.md'), `two of ${changed}`);
    writeFileSync(file('unnamed.sh'), changed);
    t.equal(trust(), 'trusted', 'control: other files change freely');
    writeFileSync(file(changed), 'two', { mode: 0o755 });
    t.equal(trust(), 'restricted', changed);
  }
  const seen = requestedFiles(at.workspace);
  writeFileSync(file('hook.sh'), 'three');
  t.throws(() => trustWorkspace(at, undefined, seen), /hook\.sh changed while the question was open/);
  t.equal(trust(), 'restricted');
});

const started: readonly (readonly [string, unknown, readonly string[]])[] = [
  ['a script of a shell without an ending', { Hooks: { TurnEnd: [{ Command: 'sh plain notes' }] } }, ['plain']],
  ['a script behind an option', { Hooks: { TurnEnd: [{ Command: 'bash -e plain; cat notes' }] } }, ['plain']],
  [
    'the value of an option',
    { Hooks: { TurnEnd: [{ Command: 'node -r plain code.txt notes' }] } },
    ['code.txt', 'plain'],
  ],
  ['a sourced file', { Hooks: { TurnEnd: [{ Command: 'true && . ./plain' }] } }, ['plain']],
  [
    'a program and its arguments',
    { McpServers: { one: { args: ['plain', 'notes'], command: '/usr/bin/python3.11' } } },
    ['plain'],
  ],
  ['a list of words', { Agent: { Command: ['env', 'FROM=here', 'perl', 'code.txt', 'notes.txt'] } }, ['code.txt']],
  ['an interpreter below another one', { Agent: { Command: ['env', 'sh', 'plain'] } }, ['plain']],
  ['data of another program', { Hooks: { TurnEnd: [{ Command: 'cat plain code.txt' }] } }, []],
  ['data of a script elsewhere', { Hooks: { TurnEnd: [{ Command: 'sh /nowhere/hook.sh; cat notes' }] } }, []],
];
for (const [name, settings, files] of started) {
  t.test(`the agreement holds ${files.length === 0 ? 'no file for' : 'the file of'} ${name}`, async (t) => {
    const base = t.testdir({
      home: {},
      ws: { '.oratorio': {}, plain: 'one', notes: 'one', 'code.txt': 'one', 'notes.txt': 'one' },
    });
    const at = { home: join(base, 'home'), workspace: join(base, 'ws') };
    writeFileSync(join(at.workspace, '.oratorio/config.json'), JSON.stringify(settings));
    t.same([...requestedFiles(at.workspace).keys()], files);
    for (const changed of ['plain', 'notes', 'code.txt', 'notes.txt']) {
      trustWorkspace(at);
      writeFileSync(join(at.workspace, changed), 'two');
      t.equal(workspaceTrust(at).trust, files.includes(changed) ? 'restricted' : 'trusted', changed);
    }
  });
}
