/** Test agent that speaks the Agent Client Protocol and follows its prompt, a word a line. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** Stores each message for the test that names a file for them. */
const { STUB_RECORD } = process.env;
const record = (to, line) => STUB_RECORD && appendFileSync(STUB_RECORD, `${to} ${line}\n`);
const send = (message) => {
  const line = JSON.stringify({ jsonrpc: '2.0', ...message });
  record('client', line);
  return process.stdout.write(`${line}\n`);
};
const waiting = new Map();
let lastId = 1000;
const ask = (method, params) =>
  new Promise((resolve) => {
    lastId += 1;
    waiting.set(lastId, resolve);
    send({ id: lastId, method, params });
  });
const sessions = new Map();
let made = 0;
let hasForgotten = false;
let questionId;
let slow;
let withdrawn;
let worker;
const flags = new Set((process.env.STUB_FLAGS ?? '').split(' '));

const update = (sessionId, sessionUpdate, rest) =>
  send({ method: 'session/update', params: { sessionId, update: { sessionUpdate, ...rest } } });
const saying = (sessionId, messageId, text) =>
  update(sessionId, 'agent_message_chunk', { messageId, content: { type: 'text', text } });
const say = (sessionId, text) => update(sessionId, 'agent_message_chunk', { content: { type: 'text', text } });

/** `@` begins a path that is used unchanged. */
const placed = (session, path) => (path.startsWith('@') ? path.slice(1) : `${session.cwd}/${path}`);
const written = async (sessionId, path) => {
  const { error } = await ask('fs/write_text_file', { sessionId, path, content: 'written by the client\n' });
  return error ? `${error.code} ${error.message}` : 'written';
};

/** Runs a command in a terminal of the client. `more` are further parameters. @returns the answer of the client, as words */
const inTerminal = async (sessionId, command, more = {}) => {
  const { result, error } = await ask('terminal/create', { sessionId, command, ...more });
  if (error) return `${error.code} ${error.message}`;
  const terminal = { sessionId, terminalId: result.terminalId };
  const exit = (await ask('terminal/wait_for_exit', terminal)).result;
  const shown = (await ask('terminal/output', terminal)).result;
  await ask('terminal/release', terminal);
  const after = (await ask('terminal/output', terminal)).error;
  return JSON.stringify({ exit, shown, after: after?.code });
};

const options = [
  { optionId: 'x1', name: 'Never', kind: 'reject_once' },
  { optionId: 'x2', name: 'Always', kind: 'allow_always' },
  { optionId: 'x3', name: 'Once', kind: 'allow_once' },
];

let chosen = { model: 'fast', effort: 'low', web: false, depth: 'short', asks: true };
const modes = {
  currentModeId: 'default',
  availableModes: [
    { id: 'default', name: 'Default' },
    { id: 'plan', name: 'Plan\nfirst' },
    { id: 'yolo', name: 'Safe' },
  ],
};
/** Models in groups, as some agents have them. */
const offered = () => [
  {
    ...{ id: 'm', name: 'Model', category: 'model', type: 'select', currentValue: chosen.model },
    options: [{ group: 'g', name: 'All', options: named('fast', 'deep') }],
  },
  {
    ...{ id: 'e', name: 'Effort', category: 'thought_level', type: 'select', currentValue: chosen.effort },
    options: named('low', 'high'),
  },
  ...(flags.has('options') ? further() : []),
];
const named = (...values) => values.map((value) => ({ value, name: value }));
/** Options that our threads have no setting for. */
const further = () => [
  { id: 'w', name: 'Web\nsearch', category: 'model_config', type: 'boolean', currentValue: chosen.web },
  {
    ...{ id: 'd', name: 'Depth', category: 'model_config', type: 'select', currentValue: chosen.depth },
    options: named('short', 'long'),
  },
  { id: 'a', name: 'Ask', type: 'boolean', currentValue: chosen.asks },
  { id: 'odd', name: 'Odd', type: 'boolean', currentValue: 'neither' },
  { name: 'without an id', type: 'boolean', currentValue: true },
];

/** Options of a session. As opencode has them: its own models, and others where the user has set them up. */
function state() {
  if (flags.has('offers')) return { configOptions: offered(), modes };
  if (!flags.has('hosted') && !flags.has('provided')) return null;
  const values = ['opencode/big-pickle', ...(flags.has('provided') ? ['mine/model'] : [])];
  const model = {
    id: 'model',
    category: 'model',
    currentValue: values[0],
    options: values.map((value) => ({ value })),
  };
  return { configOptions: [{ id: 'mode', category: 'mode' }, model] };
}

const address = () => process.env.GEMINI_TELEMETRY_OTLP_ENDPOINT ?? 'http://127.0.0.1:9/none';
/** Exports one request to a model, as gemini does. `session` names the session; absent: that of the prompt. */
async function exportRequest(sessionId, { session = sessionId, at = Date.now(), ...attributes }) {
  const all = { 'event.name': 'gemini_cli.api_response', 'session.id': session, ...attributes };
  const anyValue = (value) => (typeof value === 'number' ? { intValue: String(value) } : { stringValue: value });
  const logRecord = {
    timeUnixNano: `${at}000000`,
    attributes: Object.entries(all).map(([key, value]) => ({ key, value: anyValue(value) })),
  };
  const answer = await fetch(`${address()}/v1/logs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [logRecord] }] }] }),
  });
  return answer.status;
}

/** Updates of one kind, for an agent that floods. */
const poured = {
  text: () => ['agent_message_chunk', { content: { type: 'text', text: 'x'.repeat(800) } }],
  calls: (index) => [
    'tool_call',
    { toolCallId: `poured_${index}`, title: 'read', kind: 'read', rawInput: { path: 'a' }, status: 'pending' },
  ],
  other: () => ['new_kind', { text: 'x'.repeat(800) }],
};

async function act(sessionId, word, argument, session) {
  switch (word) {
    case 'say':
      return say(sessionId, argument);
    case 'message': {
      // Pieces of messages: `id text` each, separated by commas.
      for (const piece of argument.split(', ')) {
        const [messageId, ...text] = piece.split(' ');
        saying(sessionId, messageId, text.join(' '));
      }
      return;
    }
    case 'think':
      return update(sessionId, 'agent_thought_chunk', { content: { type: 'text', text: argument } });
    case 'plan':
      return update(sessionId, 'plan', { entries: [{ content: argument, status: 'in_progress', priority: 'high' }] });
    case 'run': {
      const toolCallId = `call_${session.calls++}`;
      const call = { toolCallId, title: argument, kind: 'execute' };
      update(sessionId, 'tool_call', { ...call, status: 'pending', rawInput: {} });
      const answer = await ask('session/request_permission', {
        sessionId,
        toolCall: { ...call, rawInput: { command: argument } },
        options,
      });
      session.outcome = answer.result?.outcome;
      if (session.outcome?.optionId !== 'x3')
        return say(sessionId, `refused: ${session.outcome?.optionId ?? 'cancelled'}`);
      const output = await new Promise((resolve) => {
        const child = spawn('/bin/sh', ['-c', argument], { cwd: session.cwd, stdio: ['ignore', 'pipe', 'ignore'] });
        let text = '';
        child.stdout.on('data', (chunk) => {
          text += chunk;
        });
        child.on('close', () => resolve(text));
      });
      return update(sessionId, 'tool_call_update', {
        toolCallId,
        status: 'completed',
        content: [{ type: 'content', content: { type: 'text', text: output } }],
      });
    }
    case 'edit': {
      const toolCallId = `call_${session.calls++}`;
      const path = `${session.cwd}/${argument}`;
      const content = [{ type: 'diff', path, oldText: null, newText: 'written by the agent\n' }];
      const call = { toolCallId, title: `Write ${argument}`, kind: 'edit', content };
      const answer = await ask('session/request_permission', { sessionId, toolCall: call, options });
      if (answer.result?.outcome?.optionId !== 'x3') return say(sessionId, 'refused');
      writeFileSync(path, 'written by the agent\n');
      return update(sessionId, 'tool_call_update', { toolCallId, status: 'completed' });
    }
    case 'readfile': {
      const [path, line, limit] = argument.split(' ');
      const range = { ...(line && { line: Number(line) }), ...(limit && { limit: Number(limit) }) };
      const { result, error } = await ask('fs/read_text_file', { sessionId, path: placed(session, path), ...range });
      return say(sessionId, result ? result.content : `${error.code} ${error.message}`);
    }
    case 'writefile':
      return say(sessionId, await written(sessionId, placed(session, argument)));
    case 'askwrite': {
      // Some agents ask, and then have the client write.
      const [shown, other = shown] = argument.split(' ');
      const path = placed(session, shown);
      const call = { toolCallId: `call_${session.calls++}`, title: `Write ${shown}`, kind: 'edit' };
      const toolCall = { ...call, locations: [{ path }] };
      const asked = ask('session/request_permission', { sessionId, toolCall, options });
      // While people think, it would become another file.
      update(sessionId, 'tool_call_update', { ...call, locations: [{ path: `${path}.other` }] });
      if ((await asked).result?.outcome?.optionId !== 'x3') return say(sessionId, 'refused');
      return say(sessionId, await written(sessionId, placed(session, other)));
    }
    case 'terminal':
      return say(sessionId, await inTerminal(sessionId, argument));
    case 'terminalwith': {
      const more = JSON.parse(argument);
      const cwd = more.cwd && { cwd: placed(session, more.cwd) };
      return say(sessionId, await inTerminal(sessionId, more.command, { ...more, ...cwd }));
    }
    case 'askterminal': {
      // Some agents ask, and then have the client run it. Twice: a grant holds once.
      const toolCallId = `call_${session.calls++}`;
      const call = { toolCallId, title: argument, kind: 'execute', rawInput: { command: argument } };
      const asked = ask('session/request_permission', { sessionId, toolCall: call, options });
      // While people think, it would become another command.
      update(sessionId, 'tool_call_update', { toolCallId, rawInput: { command: 'touch other' } });
      if ((await asked).result?.outcome?.optionId !== 'x3') return say(sessionId, 'refused');
      say(sessionId, await inTerminal(sessionId, argument));
      return update(sessionId, 'tool_call_update', { toolCallId, status: 'completed' });
    }
    case 'askthen': {
      // The question and the command that follows, each in the words of some agent.
      const { asked, later, terminal } = JSON.parse(argument);
      const toolCallId = `call_${session.calls++}`;
      const answer = await ask('session/request_permission', {
        sessionId,
        toolCall: { toolCallId, ...asked },
        options,
      });
      if (answer.result?.outcome?.optionId !== 'x3') return say(sessionId, 'refused');
      if (later) update(sessionId, 'tool_call_update', { toolCallId, ...later });
      const cwd = terminal.cwd && { cwd: placed(session, terminal.cwd) };
      say(sessionId, await inTerminal(sessionId, terminal.command, { ...terminal, ...cwd }));
      return update(sessionId, 'tool_call_update', { toolCallId, status: 'completed' });
    }
    case 'killterminal': {
      const { result } = await ask('terminal/create', { sessionId, command: argument });
      const terminal = { sessionId, terminalId: result.terminalId };
      const before = (await ask('terminal/output', terminal)).result;
      await ask('terminal/kill', terminal);
      const shown = (await ask('terminal/output', terminal)).result;
      return say(sessionId, JSON.stringify({ wasRunning: before.exitStatus === undefined, shown }));
    }
    case 'leaveterminal':
      return void (await ask('terminal/create', { sessionId, command: argument }));
    case 'afterwards':
      session.afterwards = () => {
        session.late = Promise.all([
          written(sessionId, placed(session, argument)),
          ask('fs/read_text_file', { sessionId, path: placed(session, 'in.txt') }),
        ]);
      };
      return;
    case 'late': {
      const [write, read] = await session.late;
      return say(sessionId, `${write}; ${read.error?.code} ${read.error?.message}`);
    }
    case 'open':
      return update(sessionId, 'tool_call', {
        toolCallId: 'left-open',
        title: argument,
        kind: 'other',
        rawInput: { a: 1 },
      });
    case 'noise':
      return process.stdout.write('\u001b[2J not json\n[1,2]\nnull\n{"jsonrpc":"2.0","id":77,"result":{}}\n{}\n');
    case 'flood':
      return process.stdout.write('x'.repeat(17 * 1_048_576));
    case 'pour':
      // Writes as fast as the reader allows, until it is cancelled.
      for (let index = 0; !session.isCancelled; index += 1) {
        const isRead = update(sessionId, ...poured[argument](index));
        if (!isRead) await once(process.stdout, 'drain');
      }
      return;
    case 'unknown':
      return update(sessionId, argument, { anything: { at: ['all'] } });
    case 'ext':
      return say(sessionId, `ext ${(await ask('craft/drainMidTurnQueue', {})).error?.code}`);
    case 'forget':
      // Once: the prompt is sent again.
      if (hasForgotten) return;
      hasForgotten = true;
      sessions.delete(sessionId);
      throw { code: -32_002, message: 'Session not found' };
    case 'deaf':
      process.stdout.end();
      setInterval(() => {}, 1_000);
      return new Promise(() => {});
    case 'half':
      return process.stdout.write('{"jsonrpc":"2.0","method":"session/upd\n');
    case 'twice':
      return send({ id: session.promptId, result: { stopReason: 'max_tokens' } });
    case 'foreign':
      say('another-session', 'foreign');
      return send({ id: 4711, result: { stopReason: 'refusal' } });
    case 'same': {
      for (const status of ['in_progress', 'completed', 'completed', 'failed'])
        update(sessionId, 'tool_call', {
          toolCallId: 'same',
          title: argument,
          kind: 'other',
          rawInput: { a: 1 },
          status,
        });
      return;
    }
    case 'always': {
      const toolCall = { toolCallId: 'for-good', title: argument, kind: 'other', rawInput: { a: 1 } };
      const only = options.filter(({ kind }) => kind === 'allow_always');
      const answer = await ask('session/request_permission', { sessionId, toolCall, options: only });
      return say(sessionId, JSON.stringify(answer.result?.outcome));
    }
    case 'withdraw': {
      // Another session takes the question back.
      const call = { toolCallId: `call_${session.calls++}`, title: argument, kind: 'execute' };
      const toolCall = { ...call, rawInput: { command: argument } };
      const answer = ask('session/request_permission', { sessionId, toolCall, options });
      questionId = lastId;
      return say(sessionId, `withdrawn ${(await answer).error?.code}`);
    }
    case 'withdrawterminal': {
      const answer = ask('terminal/create', { sessionId, command: argument });
      questionId = lastId;
      return say(sessionId, `withdrawn ${(await answer).error?.code}`);
    }
    case 'takeback':
      return send({ method: '$/cancel_request', params: { requestId: questionId } });
    case 'slow':
      // The next session is not made; its request is withdrawn.
      await new Promise((resolve) => {
        slow = resolve;
      });
      say(sessionId, ', asked for a session');
      await new Promise((resolve) => {
        withdrawn = resolve;
      });
      return say(sessionId, ' and withdrawn');
    case 'malformed':
      update(sessionId, 'tool_call', { toolCallId: 7 });
      update(sessionId, 'agent_message_chunk', { content: 'no object' });
      update(sessionId, 'plan', { entries: 'none' });
      return say(sessionId, `refused ${(await ask('session/request_permission', { sessionId })).error?.code}`);
    case 'elicit': {
      const { result, error } = await ask('elicitation/create', { sessionId, ...JSON.parse(argument) });
      return say(sessionId, JSON.stringify(result ?? error));
    }
    case 'servers':
      return say(sessionId, JSON.stringify(session.mcpServers));
    case 'directories':
      return say(sessionId, JSON.stringify(session.additionalDirectories ?? null));
    case 'exit':
      return process.exit(Number(argument));
    case 'hang':
      return new Promise(() => {});
    case 'wait':
      // Until it is cancelled.
      return new Promise((resolve) => {
        session.cancelled = resolve;
      });
    case 'error':
      throw { code: Number(argument), message: 'no such luck' };
    case 'child':
      return void spawn('sleep', ['1000'], { detached: argument === 'detached', stdio: 'ignore' });
    case 'escape':
      // A session of its own, and nothing of our environment.
      return void spawn('env', ['-i', 'sleep', argument], { stdio: 'ignore', detached: true });
    case 'worker':
      // Named like that of codex.
      worker = spawn(process.execPath, ['-e', 'setInterval(() => {}, 9999)', 'codex app-server'], { stdio: 'ignore' });
      return;
    case 'loseworker':
      worker.kill('SIGKILL');
      return void (await once(worker, 'exit'));
    case 'cost':
      return update(sessionId, 'usage_update', {
        used: 10,
        size: 100,
        cost: { amount: Number(argument), currency: 'USD' },
      });
    case 'stop':
      session.stopReason = argument;
      return;
    case 'chosen':
      return say(sessionId, `${chosen.model} ${chosen.effort} ${modes.currentModeId}`);
    case 'asks':
      return say(sessionId, `asks ${chosen.asks}`);
    case 'options':
      return say(sessionId, `web ${chosen.web}, depth ${chosen.depth}`);
    case 'commands': {
      const named = argument
        .split(' ')
        .map((name) => ({ name, description: `does\n${name}`, input: { hint: 'what' } }));
      const availableCommands = [...named, { name: 'no name', description: 'x' }, 7];
      return update(sessionId, 'available_commands_update', { availableCommands });
    }
    case '/review':
      return say(sessionId, `reviewed ${argument}`);
    case 'export':
      return say(sessionId, `exported ${await exportRequest(sessionId, JSON.parse(argument))}`);
    case 'exportlate':
      session.afterwards = async () => {
        // The word first: a test that has seen the export begins the next turn, into which a later word would come.
        say(sessionId, 'a word after the turn');
        await exportRequest(sessionId, JSON.parse(argument));
      };
      return;
    case 'telemetry':
      return say(sessionId, JSON.stringify(Object.keys(process.env).filter((name) => /TELEMETRY|OTEL/.test(name))));
    case 'address':
      return say(sessionId, address());
    case 'counted':
      // The form in which qwen counts one request.
      session.isUncounted = true;
      return update(sessionId, 'agent_message_chunk', {
        content: { type: 'text', text: '' },
        _meta: { usage: JSON.parse(argument) },
      });
    case 'quota':
      // The form in which gemini counts a prompt.
      session.isUncounted = true;
      session.quota = JSON.parse(argument);
      return;
    case 'uncounted':
      session.isUncounted = true;
      return;
    case 'pid':
      return say(sessionId, `pid ${process.pid}`);
    default:
      throw { code: -32_602, message: `no word ${word}` };
  }
}

async function prompt({ sessionId, prompt }, id) {
  const session = sessions.get(sessionId);
  if (!session) throw { code: -32_002, message: 'Session not found' };
  session.stopReason = 'end_turn';
  session.promptId = id;
  if (prompt[0]?.text?.startsWith('Your host was restarted')) {
    say(sessionId, `continued by ${process.pid}`);
    return { stopReason: 'end_turn' };
  }
  const images = prompt.filter(({ type }) => type === 'image').length;
  if (images > 0) say(sessionId, `images ${images}`);
  for (const line of prompt.flatMap(({ text = '' }) => text.split('\n'))) {
    const [word, ...rest] = line.trim().split(' ');
    if (word) await act(sessionId, word, rest.join(' '), session);
    if (session.isCancelled) break;
  }
  session.turns += 1;
  const usage = {
    inputTokens: 100 * session.turns,
    outputTokens: 10 * session.turns,
    totalTokens: 110 * session.turns,
  };
  const stopReason = session.isCancelled ? 'cancelled' : session.stopReason;
  session.isCancelled = false;
  const { isUncounted, quota } = session;
  session.isUncounted = false;
  session.quota = undefined;
  return { stopReason, ...(!isUncounted && { usage }), ...(quota && { _meta: { quota } }) };
}

const terminalLogin = {
  id: 'tty',
  name: 'In a terminal',
  type: 'terminal',
  args: ['--login'],
  env: { STUB_LOGIN: '1' },
};
const agentLogin = { id: 'browser', name: 'In a browser' };
let isLoggedIn = false;

const methods = {
  authenticate: ({ methodId }) => {
    if (methodId !== agentLogin.id) throw { code: -32_602, message: `no way ${methodId}` };
    if (flags.has('refuses')) throw { code: -32_000, message: 'the browser was closed' };
    isLoggedIn = true;
    return {};
  },
  initialize: () => {
    if (flags.has('mute')) return new Promise(() => {});
    return {
      protocolVersion: flags.has('v99') ? 99 : 1,
      agentInfo: { name: 'stub', version: '1.2.3' },
      ...(flags.has('terminal') && { authMethods: [terminalLogin, agentLogin] }),
      ...(flags.has('login') && !flags.has('terminal') && { authMethods: [agentLogin] }),
      agentCapabilities: {
        loadSession: !flags.has('forgetful'),
        promptCapabilities: { image: true },
        ...(flags.has('http') && { mcpCapabilities: { http: true } }),
        ...((flags.has('resumes') || flags.has('directories')) && {
          sessionCapabilities: {
            ...(flags.has('resumes') && { resume: {} }),
            ...(flags.has('directories') && { additionalDirectories: {} }),
          },
        }),
      },
    };
  },
  'session/new': ({ cwd, mcpServers, additionalDirectories }) => {
    if (flags.has('login') && !isLoggedIn) throw { code: -32_000, message: 'Authentication required' };
    if (slow) {
      slow();
      slow = undefined;
      return new Promise(() => {});
    }
    made += 1;
    const sessionId = `session-${process.pid}-${made}`;
    sessions.set(sessionId, { cwd, mcpServers, additionalDirectories, calls: 0, turns: 0 });
    // Some agents greet, outside of any turn.
    say(sessionId, 'a greeting');
    return { sessionId, ...state() };
  },
  'session/load': ({ sessionId, cwd }) => {
    sessions.set(sessionId, { cwd, calls: 0, turns: 0 });
    say(sessionId, 'replayed');
    return state();
  },
  'session/resume': ({ sessionId, cwd }) => {
    sessions.set(sessionId, { cwd, calls: 0, turns: 0 });
    return state();
  },
  'session/set_mode': ({ modeId }) => {
    modes.currentModeId = modeId;
    return {};
  },
  'session/set_config_option': ({ configId, value }) => {
    chosen = { ...chosen, [{ m: 'model', e: 'effort', w: 'web', d: 'depth', a: 'asks' }[configId]]: value };
    return state();
  },
  '$/cancel_request': () => withdrawn?.(),
  'session/prompt': prompt,
  'session/cancel': ({ sessionId }) => {
    const session = sessions.get(sessionId);
    if (!session) return;
    session.isCancelled = true;
    session.cancelled?.();
  },
};

if (flags.has('broken')) process.exit(3);
if (process.argv[2] === '--login') {
  process.stdout.write(`logged in with ${process.env.STUB_LOGIN}\n`);
  process.exit(0);
}
createInterface({ input: process.stdin }).on('line', async (line) => {
  record('agent', line);
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)?.({ result, error });
  try {
    const made = await methods[method]?.(params, id);
    if (id !== undefined) send({ id, result: made });
    const session = sessions.get(params?.sessionId);
    session?.afterwards?.();
    if (session) session.afterwards = undefined;
  } catch (thrown) {
    if (id !== undefined) send({ id, error: { code: thrown.code ?? -32_603, message: thrown.message } });
  }
});
