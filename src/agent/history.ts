import type { InputPart, Item, ItemOf, Turn } from '../protocol/index.ts';
import type { ContentPart, ModelMessage, ModelState, ModelToolCall } from './model.ts';
import { pictureFor } from './pictures.ts';

/** Text of a user's message. */
export function textOf(input: readonly InputPart[]): string {
  return input.map(partText).join('\n');
}

function partText(part: InputPart): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'commandRef':
      return part.text ?? part.rawText ?? `/${part.name} ${part.argsText ?? ''}`.trim();
    case 'skillRef':
      return part.text === undefined ? `$${part.name}` : `<skill name="${part.name}">\n${part.text}\n</skill>`;
    case 'resourceRef':
      return resourceText(part);
    case 'fileRef':
      return `@${part.displayPath ?? part.path}`;
    case 'image':
      return '[image]';
    case 'localImage':
      return `[image ${part.fileName ?? part.path}]`;
  }
}

function resourceText({ server, uri, text }: InputPart & { type: 'resourceRef' }): string {
  if (text === undefined) return `@${server}:${uri}`;
  // Text after an end tag would pass for words of the user.
  const inner = text.replace(/<(?=\/resource)/gi, '&lt;');
  return `<resource server="${server}" uri=${JSON.stringify(uri)}>\n${inner}\n</resource>`;
}

/** Images that messages name by their paths, by path. */
export type Images = ReadonlyMap<string, ContentPart>;

const noImages: Images = new Map();

/** The paths of images that messages name. */
export function imagePathsOf(turns: readonly Pick<Turn, 'items'>[]): readonly string[] {
  const paths: string[] = [];
  for (const { items } of turns)
    for (const item of items) if (item.type === 'userMessage') paths.push(...imagePathsIn(item.input));
  return paths;
}

export const imagePathsIn = (input: readonly InputPart[]): readonly string[] =>
  input.flatMap((part) => (part.type === 'localImage' ? [part.path] : []));

/** Stands for a picture that a model service has refused. */
export const refusedPicture: ContentPart = {
  type: 'text',
  text: '[A picture was here. The service of the model refused it.]',
};

/** A user's message as a model gets it. An image that is not among `images` is only mentioned. */
export function contentOf(input: readonly InputPart[], images: Images = noImages): ContentPart[] {
  return input.map((part): ContentPart => {
    if (part.type === 'image') return pictureFor({ type: 'image', url: part.url });
    if (part.type === 'localImage') return images.get(part.path) ?? { type: 'text', text: partText(part) };
    return { type: 'text', text: partText(part) };
  });
}

/** Stands for a missing result of a call: providers refuse a conversation without it. */
const lost = '(no result: the turn ended before the tool did)';

/**
 * Builds the conversation of earlier turns for a model: questions, answers, calls and their results; neither thoughts
 * nor errors nor notices. Every call has exactly one result, right behind the message that made it.
 */
export function historyOf(turns: readonly Pick<Turn, 'items'>[], additions?: Additions): ModelMessage[] {
  return messagesOf(
    turns.flatMap(({ items }) => items),
    additions,
  );
}

/** Parts of a conversation that its items lack. */
export interface Additions {
  readonly images?: Images;
  /** Images of results, by item id. */
  readonly resultImages?: ReadonlyMap<string, readonly ContentPart[]>;
  readonly states?: States;
  /** Messages whose pictures are left out besides those that notices name, by item id. */
  readonly withoutPictures?: ReadonlySet<string>;
  /** The calls of the last answer get their results later. */
  readonly areCallsOpen?: boolean;
}

/** States of answers by the last item of each. */
export type States = ReadonlyMap<string, ModelState>;

/** Notices of failed requests: the conversation excludes the model's text before such a notice. */
export const discardingNotices: ReadonlySet<string> = new Set(['requestRepeated', 'modelReplaced']);

/** Kind of the notice that names messages whose pictures the service of the model has refused: the model no longer gets them. */
export const pictureRefusedNotice = 'pictureRefused';
/** Kind of the notice that names tools which the service of the model has refused: the model no longer gets them. */
export const toolRefusedNotice = 'toolRefused';
/** Kind of the notice with a text of hooks, which the model gets. */
export const hookContextNotice = 'hookContext';
/** Kind of the notice with the mode of a turn, which the model gets. */
export const modeNotice = 'turnMode';
/** Kind of the notice behind a prompt that a hook blocked: the model never gets it. */
export const promptBlockedNotice = 'promptBlocked';

/** Text of hooks as a model gets it. */
export const hookMessage = (text: string): ModelMessage => ({
  role: 'user',
  content: [{ type: 'text', text: `<hook>\n${text}\n</hook>` }],
});

/** A part of an answer that broke off and was requested again. */
export const isDiscarded = (item: Item): boolean => 'discarded' in item && item.discarded === true;

/** Builds the messages of consecutive items. */
export function messagesOf(items: readonly Item[], additions: Additions = {}): ModelMessage[] {
  const { images, states } = additions;
  const refused = refusedIn(items, additions);
  const messages: ModelMessage[] = [];
  let answer: { text: string; toolCalls: ModelToolCall[]; state?: ModelState } | undefined;
  let waiting = new Map<string, string>();
  /** Parts of the broken answer are marked. */
  let isMarked = false;
  const close = () => {
    if (answer) messages.push({ role: 'assistant', ...answer });
    answer = undefined;
  };
  const settle = () => {
    close();
    for (const [callId, name] of waiting) messages.push(toolMessage(callId, name, lost));
    waiting = new Map();
  };
  for (const item of items) {
    if (isDiscarded(item)) {
      isMarked = true;
    } else if (item.type === 'systemNotice' && discardingNotices.has(item.kind)) {
      // Threads of earlier versions have unmarked parts.
      if (isMarked) {
        isMarked = false;
        continue;
      }
      for (const { callId } of answer?.toolCalls ?? []) waiting.delete(callId);
      answer = undefined;
    } else if (item.type === 'systemNotice' && item.kind === hookContextNotice) {
      settle();
      messages.push(hookMessage(item.text));
    } else if (item.type === 'systemNotice' && item.kind === modeNotice) {
      settle();
      messages.push({ role: 'user', content: [{ type: 'text', text: item.text }] });
    } else if (item.type === 'systemNotice' && item.kind === promptBlockedNotice) {
      if (messages.at(-1)?.role === 'user') messages.pop();
    } else if (item.type === 'userMessage') {
      settle();
      messages.push(userMessage(item, images, refused.has(item.id)));
    } else if (item.type === 'agentMessage') {
      if (waiting.size > 0) settle();
      answer ??= { text: '', toolCalls: [] };
      answer.text += item.text;
    } else if (item.type === 'toolCall') {
      answer ??= { text: '', toolCalls: [] };
      answer.toolCalls.push({ callId: item.callId, name: item.tool, arguments: item.arguments });
      waiting.set(item.callId, item.tool);
    } else if (item.type === 'toolResult' && waiting.delete(item.callId)) {
      close();
      messages.push(toolMessage(item.callId, item.tool, item.text, additions.resultImages?.get(item.id)));
    }
    const state = states?.get(item.id);
    if (answer && state) answer.state = state;
  }
  if (additions.areCallsOpen) close();
  else settle();
  return messages;
}

/** Items of messages without their pictures. */
function refusedIn(items: readonly Item[], { withoutPictures }: Additions): ReadonlySet<string> {
  const named = items.flatMap((item) =>
    item.type === 'systemNotice' && item.kind === pictureRefusedNotice ? (item.itemIds ?? []) : [],
  );
  return new Set([...(withoutPictures ?? []), ...named]);
}

/** Tools that notices among the items name as refused. */
export const refusedToolsIn = (items: readonly Item[]): readonly string[] =>
  items.flatMap((item) => (item.type === 'systemNotice' && item.kind === toolRefusedNotice ? (item.tools ?? []) : []));

function userMessage(
  { id, input }: ItemOf<'userMessage'>,
  images: Images | undefined,
  isRefused: boolean,
): ModelMessage {
  const content = contentOf(input, images);
  const shown = isRefused ? content.map((part) => (part.type === 'image' ? refusedPicture : part)) : content;
  return { role: 'user', content: shown, itemId: id };
}

function toolMessage(callId: string, name: string, text: string, images: readonly ContentPart[] = []): ModelMessage {
  return { role: 'tool', callId, name, content: [{ type: 'text', text }, ...images] };
}
