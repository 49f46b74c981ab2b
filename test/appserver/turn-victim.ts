/**
 * An agent server whose model follows the script that a prompt names, and which kills itself, its Hub or both at the moment in `kill.json`
 * of its home.
 * Arguments: those of the agent server.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { Actor } from 'xstate';
import type { ModelEvent, ModelProvider, ModelRequest } from '../../src/agent/index.ts';
import { DurableJournal } from '../../src/agent/runtime/journal.ts';
import { parseArguments } from '../../src/appserver/arguments.ts';
import { readLaunchDocument } from '../../src/appserver/launch-document.ts';
import { runAppServer } from '../../src/appserver/run.ts';
import { createLogger } from '../../src/log/index.ts';
import { answerTo, type Moment, type RequestLine } from './turn-scripts.ts';

const { workspacePath, isManaged } = parseArguments(process.argv.slice(2));
const home = process.env['ORATORIO_HOME'] ?? '';
const killFile = join(home, 'kill.json');
const requestFile = join(home, 'requests.jsonl');

let moment: Moment | undefined;
let isInState = false;
let ticks = 0;
let times = 0;

function arm(): void {
  if (moment || !existsSync(killFile)) return;
  moment = JSON.parse(readFileSync(killFile, 'utf8'));
  ticks = 0;
  times = 0;
}

/** Without the file the test has given the moment up. */
function die(): void {
  const hub = moment?.hub;
  moment = undefined;
  isInState = false;
  if (!existsSync(killFile)) return;
  rmSync(killFile);
  // The next server starts from the compiled code, which Node stores at an orderly end only.
  flushCompileCache();
  if (hub) process.kill(hub.pid, 'SIGKILL');
  if (!hub?.isAlone) process.kill(process.pid, 'SIGKILL');
}

/** Counts a step of any turn, and dies at the chosen one. */
function tick(): void {
  ticks += 1;
  if (moment?.kind === 'step' && ticks >= moment.step) die();
}

function enter(state: string): void {
  tick();
  if (moment?.kind !== 'state' || moment.state !== state) return;
  times += 1;
  if (times < (moment.times ?? 1)) return;
  if (moment.at === 'entry') die();
  isInState = true;
}

const leafOf = (value: unknown, path: readonly string[] = []): string => {
  if (typeof value === 'string') return [...path, value].join('.');
  const [[key, inner] = ['', '']] = Object.entries(value as object);
  return leafOf(inner, [...path, key]);
};

const start = Actor.prototype.start;
Actor.prototype.start = function (this: Actor<never>) {
  if ((this.logic as { readonly id?: string }).id === 'turn') {
    arm();
    enter('working.beginning');
    let last = '';
    this.subscribe(({ value }: { readonly value: unknown }) => {
      const state = leafOf(value);
      if (state === last) tick();
      else enter(state);
      last = state;
    });
  }
  return start.call(this);
} as typeof start;

const flush = DurableJournal.prototype.flush;
DurableJournal.prototype.flush = function (this: DurableJournal) {
  tick();
  flush.call(this);
  tick();
  if (isInState) die();
};

/** Ids of the requests so far, this process included. */
const asked = existsSync(requestFile)
  ? readFileSync(requestFile, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => (JSON.parse(line) as RequestLine).id)
  : [];

function eventsOf(request: ModelRequest): readonly ModelEvent[] {
  const { id, answer } = answerTo(request, (id) => asked.filter((each) => each === id).length);
  asked.push(id);
  const line: RequestLine = { id, messages: request.messages };
  appendFileSync(requestFile, `${JSON.stringify(line)}\n`);
  if (moment?.kind === 'request' && asked.filter((each) => each === id).length >= moment.number) die();
  const events = answer();
  return [...events, { type: 'finish', reason: events.some(({ type }) => type === 'toolCall') ? 'toolCalls' : 'stop' }];
}

const provider: ModelProvider = {
  name: 'scripted',
  model: 'scripted',
  async stream(request, emit, signal) {
    for (const event of eventsOf(request)) {
      await new Promise(setImmediate);
      signal.throwIfAborted();
      emit(event);
      tick();
    }
  },
  listModels: async () => [{ id: 'scripted', ownedBy: 'test' }],
  close: () => undefined,
};

async function serve(): Promise<void> {
  const launch = isManaged ? await readLaunchDocument(process.stdin) : undefined;
  const logger = createLogger({ name: 'appserver' });
  const run = { workspacePath, launch, env: process.env, logger, provider: async () => provider };
  process.exit((await runAppServer(run)).exitCode);
}

void serve();
