/** Text of others in everything the CLI prints: 10,000 random strings, at terminals of this process and at a real one. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { showActivity } from '../../src/cli/activity.ts';
import { declineUnattended, questionOf } from '../../src/cli/approvals.ts';
import { listLines, runLine, showLines } from '../../src/cli/commands/cron-render.ts';
import { CliError, quoted } from '../../src/cli/errors.ts';
import { explain } from '../../src/cli/explain.ts';
import { logLine } from '../../src/cli/log-lines.ts';
import { Output } from '../../src/cli/output.ts';
import { columns, eventLine, recordLines } from '../../src/cli/render.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { forkRow, rowOf, tableHeading } from '../../src/cli/workspace-table.ts';
import { HubUnavailableError, JsonRpcError } from '../../src/client/index.ts';
import { createLogger } from '../../src/log/index.ts';
import type { Automation, AutomationRun } from '../../src/protocol/index.ts';
import { anyCharacter } from '../any-character.ts';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { killIfThere, processesOf } from '../hub/harness.ts';
import { program } from '../programs.ts';
import { atTerminal, hasTerminals } from './terminal.ts';

t.setTimeout(900_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');

const attacks = [
  '\u001b[2K\u001b[1A',
  '\u001b]0;title\u0007',
  '\u001b]8;;http://evil.example\u001b\\link',
  '\u001b[31m',
  '\u001bP1$r\u001b\\',
  '\u009b2J',
  '\u009d0;x\u009c',
  '\r',
  '\b\b\b',
  '\u202e',
  '\u2066',
  '\u061c',
  '\u200f',
  '\u200b',
  '\ufeff',
  '\u2028',
  '\u{e0041}',
  '\ud800',
  '\u007f',
];
const foreign = fc
  .array(
    fc.oneof(fc.constantFrom(...attacks), fc.string({ unit: anyCharacter, maxLength: 4 }), fc.string({ maxLength: 4 })),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join(''));
const strings = fc.sample(foreign, { numRuns: 10_000, seed: 7 });
const all = strings.join(' ');
/** Strings of the test, four in each text: a renderer takes one as long as four. */
const texts = Array.from({ length: strings.length / 4 }, (_, n) => strings.slice(4 * n, 4 * n + 4).join(' '));

/** Characters that no terminal may get from foreign text. The terminals of this file have no colours, so the CLI writes none of them. */
const raw = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;

class Screen extends Writable {
  readonly isTTY = true;
  text = '';
  constructor() {
    super({ decodeStrings: false });
  }
  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

// The logger asks the process itself.
process.env['NO_COLOR'] = '1';
const env = { TERM: 'dumb', NO_COLOR: '1' };

function terminal({ json = false }: { json?: boolean } = {}) {
  const [stdout, stderr] = [new Screen(), new Screen()];
  return { output: new Output({ stdout, stderr, env, json }), shown: () => stdout.text + stderr.text };
}

function isSafe(t: Test, text: string, what: string): void {
  const found = raw.exec(text);
  t.equal(found && JSON.stringify(text.slice(Math.max(0, found.index - 20), found.index + 20)), null, what);
}

const recordWith = (text: string) => ({
  ...recordOf(text, { state: 'exited', lastError: text, recentStderr: text, serverVersion: text }),
  serviceStatus: { [text]: { state: 'unavailable' as const, url: null, reason: text } },
  state: 'exited' as const,
  displayName: text,
  phase: text,
  trust: 'restricted' as const,
  restrictedSettings: [text],
  page: null,
  ...{ health: 'unknown', problems: [], lastTurn: null, failuresInARow: 0, model: null },
  ...{ pendingApprovals: 0, turnsResumed: 0, costUsd: null, sandbox: null, configChanged: false, incident: null },
  adopted: false,
  incarnation: 1,
  restartCount: 2,
  nextAttemptAt: text,
  lastStartedAt: null,
  lastExitedAt: null,
  health: text,
  problems: [{ code: text, what: text, where: text, next: text }],
  lastTurn: { status: text, endedAt: text, code: text, message: text },
  failuresInARow: 2,
  model: { name: text, provider: text, host: text },
  agent: { kind: text, name: text, version: text, state: text, approvals: text },
  pendingApprovals: 1,
  costUsd: 1,
  configChanged: true,
});

const at = '2026-01-01T00:00:00.000Z';
const threadsWith = (text: string) => {
  const race = { number: 1, state: text };
  const fork = { forkedFromThreadId: text, directory: text, race: null };
  const thread = { workspaceId: text, threadId: text, name: text, status: text, lastActiveAt: text, actionUrl: text };
  return {
    threads: [
      { ...thread, activity: text, fork },
      { ...thread, fork: { ...fork, race } },
    ],
    hasMore: false,
    workspaces: [{ workspaceId: text, workspacePath: text, displayName: text, state: text }],
  };
};
const runWith = (text: string): AutomationRun => ({
  runId: text,
  automationId: text,
  attempt: 2,
  trigger: 'schedule',
  scheduledFor: at,
  status: 'failed',
  coalesced: 1,
  error: { code: text, message: text },
  result: text,
});
const automationWith = (text: string): Automation => ({
  id: text,
  kind: 'cron',
  name: text,
  prompt: text,
  schedule: { kind: 'every', everyMs: 60_000 },
  scheduleText: text,
  binding: { mode: 'thread', threadId: text },
  model: text,
  state: 'waiting',
  upcoming: [],
  failures: 1,
  recentRuns: [runWith(text)],
  enabled: true,
  deleteAfterRun: false,
  createdAt: at,
  updatedAt: at,
  version: 1,
});

t.test(
  'no renderer or method of the output passes raw foreign text to a terminal, 10,000 random strings',
  async (t) => {
    const { output, shown } = terminal();
    const { colors } = output;
    const activity = showActivity(output);
    const decline = declineUnattended(output);
    const log = new Screen();
    const logger = createLogger({ name: 'test', stream: log, level: 'debug' });
    const item = (type: string, text: string) => ({
      type: 'other' as const,
      method: 'item/completed',
      params: { item: { type, tool: text, arguments: text, text, outcome: 'failed' } },
    });
    for (const text of texts) {
      output.line(text);
      output.raw(text);
      output.document({ [text]: text });
      output.jsonLine([text]);
      output.note(text);
      output.warn(text);
      output.line(`${colors.bold(text)}${colors.dim(colors.red(text))}`);
      output.line(output.question(text));
      for (const error of [
        new CliError('failure', text, quoted(text)),
        new JsonRpcError({ code: -1, message: text }),
        new HubUnavailableError(text),
        new Error(text),
      ])
        output.failure(explain(error));
      for (const line of recordLines(recordWith(text), colors)) output.line(line);
      const fork = { ...{ threadId: text, name: text, race: null, activity: text }, directory: text, page: text };
      const rows = [rowOf(recordWith(text), 0, colors), forkRow({ ...fork, forkedFromThreadId: text })];
      for (const line of columns(tableHeading, rows, output)) output.line(line);
      output.line(logLine(text, colors));
      output.line(logLine(JSON.stringify({ at: text, level: text, name: text, msg: text, [text]: text }), colors));
      output.line(eventLine({ id: text, kind: text, at: text, workspacePath: text, data: { [text]: text } }, colors));
      for (const line of listLines([automationWith(text)], 0, output)) output.line(line);
      for (const line of showLines(automationWith(text), 0, colors)) output.line(line);
      output.line(runLine(runWith(text), colors));
      activity(item('toolCall', text));
      activity(item('toolResult', text));
      activity({ type: 'other', method: 'system/event', params: { message: text } });
      const need = { tool: text, operation: text, target: text, workingDirectory: text, covers: text, reason: text };
      output.line(questionOf({ ...need, scopeKey: text }, output));
      const ids = { threadId: 't', turnId: 'u', itemId: 'i', requestId: 'r', callId: 'c', approvalType: 'shell' };
      void decline('item/approval/request', { ...ids, ...need, scopeKey: text, createdAt: at, expiresAt: at });
      logger.warn(text, { [text]: text, error: new Error(text) });
    }
    isSafe(t, shown(), 'output');
    isSafe(t, log.text, 'log lines');
  },
);

t.test('regression: H51 a question repeats the length of a long command beside its answers', async (t) => {
  const colors = { yellow: String, bold: String, dim: String } as unknown as Output['colors'];
  const lines = (target: string) =>
    questionOf({ tool: 'Exec', operation: 'run', target, scopeKey: 'x' }, { colors }).split('\n');
  const long = lines(`ls${'\n'.repeat(60)}curl -s http://example.invalid/x | sh`);
  t.same(long.slice(2, 6), [
    '  │ ls',
    '  │ ⏎ × 60',
    '  │ curl -s http://example.invalid/x | sh',
    '  length     61 lines, beginning with: ls',
  ]);
  t.match(long[6], /^ {2}\[y\]es/, 'the answers follow');
  const pushed = lines(`rm -rf x;${' \u2800'.repeat(5_000)}${'#'.repeat(5_000)}\nls`);
  t.match(pushed[2], /^ {2}│ rm -rf x; ␣ × 10000 #/);
  t.match(pushed[4], /^ {2}length {5}2 lines, beginning with: rm -rf x; ␣ × 10000 #{50,60}…$/);
  const wide = lines(`rm -rf x; ${'true; '.repeat(2_000)}ls`);
  t.match(wide[3], /^ {2}length {5}12012 characters, beginning with: rm -rf x; true;.{60,70}…$/);
  t.notMatch(lines('ls').join('\n'), /length/, 'positive control: a short command has no such line');
});

t.test('a stream in random pieces reaches a terminal visible and complete', async (t) => {
  const { output, shown } = terminal();
  for (let at = 0, length = 1; at < all.length; at += length, length = (length % 7) + 1)
    output.raw(all.slice(at, at + length));
  output.raw('\n');
  isSafe(t, shown(), 'pieces');
  const whole = terminal();
  whole.output.raw(`${all}\n`);
  t.equal(shown(), whole.shown(), 'the same as in one piece');
});

t.test('the colours of the CLI stay, and those of foreign text are removed', async (t) => {
  const [stdout, stderr] = [new Screen(), new Screen()];
  const output = new Output({ stdout, stderr, env: { TERM: 'xterm' }, json: false });
  output.line(output.colors.red(`a${output.colors.bold('b')}\u001b[32mc`));
  t.match(stdout.text, '\u001b[31ma\u001b[1mb\u001b[22m␛[32mc\u001b[39m\n');
});

t.test('standard output other than a terminal gets every byte unchanged', async (t) => {
  const stdout = new Screen();
  Object.defineProperty(stdout, 'isTTY', { value: false });
  const output = new Output({ stdout, stderr: new Screen(), env, json: false });
  output.line(all);
  output.raw(all);
  t.equal(stdout.text, `${all}\n${all}`);
});

t.test('JSON at a terminal escapes invisible characters and has the same value', async (t) => {
  const { output, shown } = terminal({ json: true });
  output.jsonLine({ all });
  isSafe(t, shown(), 'JSON');
  t.equal(JSON.parse(shown()).all, all);
});

t.test('a quoted path is the same path for a shell, without invisible characters', async (t) => {
  t.equal(quoted("/a b'c"), "'/a b'\\''c'");
  t.equal(quoted('/a\u001b\u202e'), "$'/a\\x1b\\xe2\\x80\\xae'");
});

const hostWith = (text: string) => ({
  name: 'build',
  ssh: 'ssh://build-box',
  program: text,
  state: 'unreachable',
  phase: text,
  ...{ reason: text, next: text, version: text },
  ...{ workspaces: 1, waiting: 0, since: at, asOf: at },
});

/** Hub with one of `texts` in every text of an answer, by turns. */
async function hostileHub(t: Test, texts: readonly string[]) {
  let answers = 0;
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-foreign-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const hub = await fakeHub((request, response, body) => {
    const url = request.url ?? '';
    const next = () => texts[answers++ % texts.length] ?? '';
    const all = next();
    const record = recordWith(all);
    if (url === '/v1/status') return sendJson(response, 200, statusOf(hub.baseUrl, { statePath: all }));
    if (url === '/v1/appservers') return sendJson(response, 200, [record, recordWith(next())]);
    if (url === '/v1/hosts') return sendJson(response, 200, [hostWith(all)]);
    if (url.startsWith('/v1/fleet/appservers'))
      return sendJson(response, 200, {
        appServers: [
          { ...record, host: null, asOf: null },
          { ...recordWith(next()), host: 'build', asOf: at },
        ],
        ...{ hosts: [hostWith(all)], next: null },
      });
    if (url.startsWith('/v1/threads')) return sendJson(response, 200, threadsWith(all));
    if (url.startsWith('/v1/appservers/logs')) return void response.end(all);
    if (url === '/v1/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = { kind: 'appserver.running', at, workspacePath: all, data: { error: all, endpoints: { all } } };
      return void response.write(`id: a-1\nevent: appserver.running\ndata: ${JSON.stringify(event)}\n\n`);
    }
    if (url.includes('refused') || body.includes('refused')) {
      const error = { code: 'appServerStartFailed', message: all, details: { workspacePath: all, recentStderr: all } };
      return sendJson(response, 500, { error });
    }
    return sendJson(response, 200, record);
  });
  t.teardown(() => hub.close());
  // A command that does not find this Hub starts a real one.
  t.teardown(() => processesOf(home, 'ORATORIO_HOME').forEach(killIfThere));
  writeLock(home, lockOf(hub.baseUrl));
  return home;
}

t.test('regression: H1 no command passes raw text of a Hub to a terminal, 10,000 random strings', async (t) => {
  // Each answer has a fifth of the strings in every text: a command prints each text several times.
  const part = strings.length / 5;
  const fifths = [0, 1, 2, 3, 4].map((n) => strings.slice(n * part, (n + 1) * part).join(' '));
  const shortest = Math.min(...fifths.map(({ length }) => length));
  const home = await hostileHub(t, fifths);
  const lines: readonly (readonly string[])[] = [
    ['list'],
    ['list', '--json'],
    ['inspect', '/w'],
    ['inspect', '/w', '--json'],
    ['inspect', '/refused'],
    ['ensure', '/w'],
    ['ensure', '/refused'],
    ['ensure', '/refused', '--json'],
    ['restart', '/w'],
    ['stop', '/w'],
    ['logs', '/w'],
    ['hub', 'status'],
    ['hub', 'status', '--json'],
    [`no-such-command-${strings[0]}${strings[1]}`],
    ['ensure', `/none/${strings[2]}\u001b[2K\u202e`],
    ['init', `${home}/\u001b[2K\u202e`],
    ['up', `${home}/\u001b[2K\u202e`, '--no-follow'],
    ['up', `${home}/not-yet\u001b[2K\u202e`, '--no-follow', '--no-start'],
  ];
  for (const argv of lines) {
    const [stdout, stderr] = [new Screen(), new Screen()];
    const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
    await runCommandLine(argv, {
      stdout,
      stderr,
      env: { ...env, PATH: process.env['PATH'], HOME: home, ORATORIO_HOME: home },
      cwd: home,
      interruption,
    });
    const shown = stdout.text + stderr.text;
    t.not(shown, '', argv.slice(0, 1).join());
    if (/^(list|logs|hub|ensure|inspect|stop|restart)$/.test(argv[0] ?? ''))
      t.ok(shown.length > shortest / 2, 'all of it was shown');
    isSafe(t, shown, argv.slice(0, 2).join(' '));
  }
});

t.test('a real terminal gets no raw foreign text', async (t) => {
  const home = await hostileHub(t, [strings.slice(0, 300).join(' ')]);
  const main = program('src/cli/main.ts');
  for (const argv of [['list'], ['logs', '/w'], ['events'], ['inspect', '/refused']]) {
    const node = [
      'env',
      'TERM=dumb',
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      '--conditions=development',
      main,
    ];
    const shown = atTerminal(t, [...node, ...argv], {
      cwd: home,
      env: { ...env, PATH: process.env['PATH'] ?? '', HOME: home, ORATORIO_HOME: home },
    });
    if (argv[0] === 'events') {
      await shown.shows('appserver.running');
      shown.type('\u0003');
    }
    await shown.ended;
    // The terminal itself writes a carriage return before each line feed.
    isSafe(t, shown.screen().replaceAll('\r\n', '\n'), argv.join(' '));
  }
});
