import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { catalogue, hostStepMs, type MachineWords } from '../machines/index.ts';
import {
  graphOf,
  type MachineGraph,
  matrixOf,
  mermaidOf,
  pictureSvg,
  statesTableOf,
  tableOf,
} from '../src/inspect/index.ts';
import { conversationDefaults as chat, defaults } from '../src/protocol/index.ts';
import { currentDrawings, drawnChart, wordsFor } from './drawings.ts';
import { root } from './toolchain.mjs';

/** First comment of a file. */
interface Header {
  /** First paragraph. */
  readonly summary: string;
  /** The numbered list "Detailed operation", one text for each number. */
  readonly operation: readonly string[];
}

/** Reads the comment with which a machine's source begins. Throws when it has none. */
export function headerOf(source: string): Header {
  const comment = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(source)?.[1];
  if (comment === undefined) throw new Error('the file does not begin with a comment');
  const lines = comment.split('\n').map((line) => line.replace(/^ \* ?/, ''));
  const [summary = '', list = ''] = lines.join('\n').split(/\n\nDetailed operation\n/);
  const operation = list.split(/^\d+\. /m).slice(1);
  return { summary: oneLine(summary), operation: operation.map(oneLine) };
}

const oneLine = (text: string): string => text.trim().replace(/\s+/g, ' ');

const { supervise, apiProxy, agent } = defaults;
const milliseconds = (value: number) => `${value.toLocaleString('en')} ms`;

/** Purpose of each named delay, and its default. */
const delayMeanings: Readonly<Record<string, readonly [meaning: string, length: string]>> = {
  startDeadline: ['A start that has not become ready is given up.', milliseconds(supervise.startDeadlineMs)],
  proxyDeadline: ['A sidecar that has not become ready is killed.', milliseconds(apiProxy.readyDeadlineMs)],
  backoff: [
    'Pause before an automatic restart: doubles with every failure, jittered over its upper half.',
    `${milliseconds(supervise.backoffBaseMs)} to ${milliseconds(supervise.backoffCapMs)}`,
  ],
  unhealthyGrace: ['How long an unhealthy server may recover by itself.', milliseconds(supervise.unhealthyGraceMs)],
  gracefulStop: ['From SIGTERM to SIGKILL.', milliseconds(supervise.gracefulStopMs)],
  killVerify: ['From SIGKILL until the process is called stuck.', milliseconds(supervise.killVerifyMs)],
  startupTimeout: ['A server that is not ready after this time is given up.', '30,000 ms (`startupTimeoutSec`)'],
  databaseRecovery: ['Time without a failure after which an outage of the database is over.', '5,000 ms'],
  closeGrace: ['From the end of the input of a server to SIGTERM.', milliseconds(defaults.mcp.closeGraceMs)],
  handshakeTimeout: [
    'An external agent that has not introduced itself after this time is killed.',
    milliseconds(defaults.externalAgent.handshakeMs),
  ],
  agentCloseGrace: [
    'From the end of the input of an agent to SIGKILL.',
    milliseconds(defaults.externalAgent.closeGraceMs),
  ],
  cancelGrace: ['How long a cancelled turn or prompt may take to end by itself.', milliseconds(agent.cancelGraceMs)],
  approvalTimeout: [
    'Without an answer the pending approvals are declined.',
    '300,000 ms (`Permissions.ApprovalTimeoutSeconds`, in the chat API `Api.ApprovalTimeoutSeconds`)',
  ],
  holdTimeout: [
    'A turn that waits for a user ends: without an answer about its budget, or after the longest wait for a quota.',
    '300,000 ms (`Permissions.ApprovalTimeoutSeconds`), `Quota.MaxWaitHours`',
  ],
  retryPause: [
    'Pause before a failed request is repeated: the time that the upstream names, else doubling with every failure.',
    '500 ms to 30,000 ms',
  ],
  turnTimeout: [
    'A run that takes longer is ended, and counts as failed. The time counts from the start of its turn, also over the end of its agent server.',
    '1,800,000 ms (`Automations.TurnTimeoutMinutes`)',
  ],
  rest: [
    'Without a request for this time the store is closed and its thread ends.',
    milliseconds(agent.fileCheckpointRestMs),
  ],
  recoverRetry: ['Rows that could not be read or written are tried again.', milliseconds(30_000)],
  openDeadline: [
    'A connection of the page that has not read the thread by then is given up.',
    milliseconds(chat.openDeadlineMs),
  ],
  movePause: [
    'Pause before both places of a move are asked again. It doubles with every failure; jitter shortens it by up to half.',
    '250 to 30,000 ms',
  ],
  hostPause: [
    'Pause before the next attempt to reach a host. It doubles with every failure; jitter shortens it by up to half.',
    '500 to 60,000 ms',
  ],
  hostStep: ['A connection step that takes longer counts as a lost connection.', milliseconds(hostStepMs)],
  feedPause: [
    'Pause before the Hub connects to an inbox again: doubles with every failure, jittered by half.',
    '200 to 5,000 ms',
  ],
  noticeRetry: [
    'Pause before a notice is tried again: doubles with every failure, or lasts as long as the service asks.',
    '1,000 to 300,000 ms',
  ],
  reconnectPause: [
    'Pause before the page connects again: doubles with every failure, jittered over its upper half.',
    `${milliseconds(chat.backoffBaseMs)} to ${milliseconds(chat.backoffCapMs)}`,
  ],
  silence: ['Silence after which the page asks the server whether it is there.', milliseconds(chat.silenceMs)],
  probeDeadline: ['How long the server may take to answer that.', milliseconds(chat.probeDeadlineMs)],
  interruptDeadline: ['After this time a turn can be interrupted again.', milliseconds(chat.interruptDeadlineMs)],
  approvalGuard: ['A question that has just appeared takes no answer.', milliseconds(chat.approvalGuardMs)],
  drainDeadline: [
    'How long a shutdown waits for agent servers.',
    `${milliseconds(supervise.gracefulStopMs + supervise.killVerifyMs + 2_000)}`,
  ],
};

function delaysTable(name: string, machine: AnyStateMachine, graph: MachineGraph): string {
  const rows = Object.keys(machine.implementations.delays).map((delay) => {
    const described = delayMeanings[delay];
    if (!described) throw new Error(`scripts/machine-docs.ts does not describe the delay ${delay} of ${name}`);
    const states = graph.edges.filter(({ event }) => event === `after(${delay})`).map(({ source }) => `\`${source}\``);
    const [meaning, length] = described;
    return `| \`${delay}\` | ${meaning} | ${length} | ${[...new Set(states)].join(', ')} |`;
  });
  return ['| Delay | Meaning | Default | In |', '|---|---|---|---|', ...rows, ''].join('\n');
}

/** Guards and actions with the words that the page shows for them, in the order of the chart. */
function wordsTable({ nodes, edges }: MachineGraph, { guards, actions }: MachineWords): string {
  const used = [...edges.flatMap((edge) => edge.actions), ...nodes.flatMap(({ entry, exit }) => [...entry, ...exit])];
  const names = edges.flatMap(({ guard }) => guard?.replaceAll('not ', '').split(/ (?:and|or) /) ?? []);
  const rows = [
    ...[...new Set(names)].map((name) => `| \`${name}\` | if ${guards[name] ?? name} |`),
    ...[...new Set(used)].map((name) => `| \`${name}\` | ${actions[name] ?? name} |`),
  ];
  return ['| Name | Meaning |', '|---|---|', ...rows, ''].join('\n');
}

const generated = '<!-- Generated by "npm run docs" from machines/. Do not edit. -->';

function machineDocument(name: string, machine: AnyStateMachine): string {
  const { summary, operation } = headerOf(readFileSync(join(root, 'machines', `${name}.ts`), 'utf8'));
  const graph = graphOf(name, machine);
  const legend =
    '`after(…)` is a delay, `done(…)` and `error(…)` are the ends of a state’s activity, `done(*)` and `error(*)` are those of any activity in the state, `always` is decided at once. ' +
    'Candidates of the same event are tried from top to bottom. Without a target (–) no state is left.';
  return [
    generated,
    `# ${name}`,
    '',
    graph.description,
    '',
    summary,
    '',
    ...(operation.length > 0
      ? ['## Detailed operation', '', ...operation.map((step, index) => `${index + 1}. ${step}`), '']
      : []),
    '## Matrix',
    '',
    'The effect of each event in each state. A number is the state that follows, `=` means that the machine does something and stays,',
    'an empty cell that it ignores the event. Several entries of one cell are tried from left to right; guards decide.',
    '',
    '```text',
    matrixOf(graph).trimEnd(),
    '```',
    '',
    '## Chart',
    '',
    `![States of ${name} and the transitions between them](${name}.svg)`,
    '',
    'Thick lines are the normal course. The text below has every event and guard.',
    '',
    '```mermaid',
    mermaidOf(graph).trimEnd(),
    '```',
    '',
    '## States',
    '',
    statesTableOf(graph),
    '## Transitions',
    '',
    legend,
    '',
    tableOf(graph),
    '## Guards and actions',
    '',
    wordsTable(graph, wordsFor(name)),
    '## Delays',
    '',
    delaysTable(name, machine, graph),
  ].join('\n');
}

function indexDocument(): string {
  const rows = Object.entries(catalogue).map(([name, machine]) => {
    const { nodes, edges } = graphOf(name, machine);
    return `| [${name}](${name}.md) | ${machine.root.description ?? ''} | ${nodes.length - 1} | ${edges.length} |`;
  });
  return [
    generated,
    '# The statecharts',
    '',
    'Every long-lived thing is an actor that runs one of these machines. They are pure: functions with effects are given to',
    'them when they are started. `oratorio inspect` shows them live, apart from `workspace-health`: its state is the `health` of a record.',
    '`oratorio machines` prints them.',
    '',
    '| Machine | Purpose | States | Transitions |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** Every document about the machines, by its path in the repository. */
export function machineDocuments(): ReadonlyMap<string, string> {
  const documents = Object.entries(catalogue).map(([name, machine]): [string, string] => [
    `docs/machines/${name}.md`,
    machineDocument(name, machine),
  ]);
  return new Map([['docs/machines/README.md', indexDocument()], ...documents]);
}

/**
 * Picture of every machine as the page draws it, by its path in the repository; light or dark as the reader's system is. Leaves out
 * machines whose drawings are stale.
 */
export async function machinePictures(): Promise<ReadonlyMap<string, string>> {
  const pictures = await Promise.all(
    Object.entries(catalogue).map(async ([name, machine]): Promise<[string, string][]> => {
      const picture = currentDrawings(graphOf(name, machine))?.pictures.wide;
      return picture ? [[`docs/machines/${name}.svg`, pictureSvg(await drawnChart(name, machine), picture)]] : [];
    }),
  );
  return new Map(pictures.flat());
}
