import { cutText, spanWords } from '../../../protocol/browser.ts';
import type { EventSummary } from '../../../protocol/index.ts';
import { humanName } from '../../parts/format.ts';
import { wordsOf } from '../chat/data/call-words.ts';
import { decisionWords } from '../inbox/store.ts';
import { textOf } from '../sessions/trace/entry.ts';
import type { FirehoseEntry } from './firehose.ts';

type Data = Readonly<Record<string, unknown>>;

/** Longest sentence of a row, in UTF-16 code units. */
const sentenceChars = 300;

const text = (data: Data, name: string): string => {
  const value = data[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};
/** `subject: detail`, or the subject alone. */
const about = (subject: string, detail: string): string => (detail === '' ? `${subject}.` : `${subject}: ${detail}`);
const ofProcess = (data: Data): string => (text(data, 'pid') === '' ? '' : ` (process ${text(data, 'pid')})`);
const counted = (data: Data, name: string, one: string, many: string): string => {
  const value = Number(data[name] ?? 0);
  return value > 0 ? ` ${value} ${value === 1 ? one : many}.` : '';
};

/** End of a process: the request, else the signal or exit code with the reason. */
function exited(subject: string, data: Data): string {
  const { stopped, error } = data;
  if (stopped === true)
    return `${subject} was stopped${data['reason'] === undefined ? '' : ` (${text(data, 'reason')})`}.`;
  const by = text(data, 'signal') || (text(data, 'exitCode') && `exit code ${text(data, 'exitCode')}`);
  return about(`${subject} ended${by && ` (${by})`}`, typeof error === 'string' ? error : '');
}

const server = 'The agent server';
const sidecar = 'The sidecar';

/** Sentences of the Hub's events. */
const ofHub: Readonly<Record<string, (data: Data) => string>> = {
  'hub.started': (data) => `The Hub has started${ofProcess(data)}.`,
  'hub.stopping': () => 'The Hub is stopping.',
  'port.allocated': (data) => `Port ${text(data, 'port')} belongs to the service ${text(data, 'service')}.`,
  'appserver.starting': (data) =>
    `${server} starts${data['attempt'] === undefined ? '' : ` again, attempt ${text(data, 'attempt')}`}.`,
  'appserver.running': (data) => {
    const verb =
      data['recovered'] === true
        ? 'answers again'
        : data['adopted'] === true
          ? 'was adopted from an earlier Hub'
          : 'is ready';
    return `${server} ${verb}${ofProcess(data)}.${counted(data, 'turnsResumed', 'turn resumes', 'turns resume')}`;
  },
  'appserver.exited': (data) => exited(server, data),
  'appserver.unhealthy': (data) => about(`${server} does not answer`, text(data, 'error')),
  'appserver.health': (data) => {
    const waiting = counted(data, 'pendingApprovals', 'request waits for you', 'requests wait for you');
    return (healths[text(data, 'health')]?.(text(data, 'code')) ?? 'Its health is not known yet.') + waiting;
  },
  'place.lost': () => 'The container engine does not answer.',
  'place.back': () => 'The container engine answers again.',
  'apiProxy.running': (data) => `${sidecar} is ready${ofProcess(data)}.`,
  'apiProxy.unhealthy': (data) => about(`${sidecar} does not answer`, text(data, 'error')),
  'apiProxy.exited': (data) => exited(sidecar, data),
  'inbox.added': (data) => about(`${text(data, 'tool')} waits for you`, text(data, 'operation')),
  'inbox.resolved': (data) =>
    about(
      'A request has ended',
      decisionWords(text(data, 'decision'), text(data, 'decidedBy'), text(data, 'requestId')),
    ),
  'host.connected': (data) => `The machine ${text(data, 'host')} is connected.`,
  'host.unreachable': (data) => about(`The machine ${text(data, 'host')} cannot be reached`, text(data, 'reason')),
  'host.refused': (data) => about(`The connection to ${text(data, 'host')} is refused`, text(data, 'reason')),
  'notification.requested': (data) => [text(data, 'title'), text(data, 'body')].filter(Boolean).join(': '),
};

const healths: Readonly<Record<string, (code: string) => string>> = {
  healthy: () => 'Turns and tools work.',
  degraded: (code) => about('Something does not work', code),
  failing: (code) => about('Turns fail', code),
};

/** Beginnings of the sentences of a trace; the text of the event follows. */
const ofTrace: Readonly<Record<string, string>> = {
  'session.started': 'A conversation began',
  'session.completed': 'The conversation ended',
  'turn.started': 'A turn began',
  'turn.resumed': 'The turn continues after a restart',
  'turn.suspended': 'The turn waits for a restart',
  thinking: 'The model thought',
  response: 'The model answered',
  'approval.requested': 'Approval was requested',
  'approval.completed': 'Approval was decided',
  'tokens.used': 'The model used tokens',
  'context.compacted': 'The context was summarised',
  'model.failed': 'A request to the model failed',
  'model.replaced': 'The model was replaced',
  error: 'A failure',
};

/** Ends of a call. */
const callEnds: Readonly<Record<string, string>> = { 'tool.completed': 'is done', 'tool.failed': 'failed' };

function traceSentence({ type, fields }: FirehoseEntry, data: Data): string | undefined {
  const { tool, durationMs } = fields as Partial<EventSummary>;
  const took = durationMs === undefined ? '' : ` after ${spanWords(durationMs)}`;
  if (type === 'turn.completed') return `The turn ended${took}: ${text(data, 'status') || 'completed'}`;
  if (type === 'tool.started') {
    const { verb, target } = wordsOf({ tool: tool ?? 'A tool', argumentsText: text(data, 'arguments') });
    return `${verb} ${target}`;
  }
  const end = callEnds[type];
  if (end !== undefined) return about(`${tool ?? 'A call'} ${end}${took}`, textOf(type, data));
  const begin = ofTrace[type];
  return begin && about(begin, textOf(type, data));
}

/** Event of the Hub or of a trace as one sentence. An unknown type is named, with the plain values of its data. */
export function sentenceOf(entry: FirehoseEntry): string {
  const { type, fields, data: sent } = entry;
  const data = (typeof fields['data'] === 'object' && fields['data'] !== null ? fields['data'] : {}) as Data;
  const sentence = ofHub[type]?.(data) ?? traceSentence(entry, data);
  return cutText(sentence || about(humanName(type.replaceAll('.', ' ')), plainValues(data) || sent), sentenceChars);
}

const plainValues = (data: Data): string =>
  Object.entries(data)
    .flatMap(([name, value]) => (typeof value === 'object' || value === '' ? [] : [`${humanName(name)} ${value}`]))
    .join(' · ');
