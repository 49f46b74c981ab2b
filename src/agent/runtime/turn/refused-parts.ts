import { refusedPicture } from '../../history.ts';
import type { ContentPart, ModelError, ModelMessage } from '../../model.ts';

/** Statuses of services for a request with a part that they do not take. */
const pictureStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);
/** Words of services for a picture that they do not take; models without pictures answer with other statuses, too. */
const pictureWords = /\bimages?\b|image_url|inline_?data|picture|vision|multimodal|media[ _-]?type|\bmime\b/i;

type Conversation = readonly ModelMessage[];

/** Pictures of one turn's conversation that the service refuses although they are in order. */
export class RefusedPictures {
  /** Items of messages whose pictures were left out. */
  readonly #itemIds = new Set<string>();
  #isPending = false;

  get itemIds(): ReadonlySet<string> {
    return this.#itemIds;
  }

  /**
   * Leaves out the pictures since the last answer, which are the only ones that the service has not accepted before; without one,
   * all pictures.
   * @returns undefined: the refusal does not concern pictures, or the conversation lacks them
   */
  leaveOut(
    error: ModelError,
    messages: Conversation,
  ): { readonly messages: ModelMessage[]; readonly count: number } | undefined {
    if (!mayConcernPictures(error)) return undefined;
    const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
    const isNew = messages.slice(lastAnswer + 1).some(hasPicture);
    const from = isNew ? lastAnswer + 1 : 0;
    const affected = messages.slice(from).filter(hasPicture);
    if (affected.length === 0) return undefined;
    for (const message of affected) {
      if (message.role === 'user' && message.itemId !== undefined) this.#itemIds.add(message.itemId);
    }
    this.#isPending = true;
    return {
      messages: messages.map((message, index) => (index < from ? message : withoutPictures(message))),
      count: affected.reduce((sum, message) => sum + picturesOf(message).length, 0),
    };
  }

  /** The service has answered a request without them. @returns items whose pictures were the cause, once */
  confirm(): readonly string[] {
    const caused = this.#isPending ? [...this.#itemIds] : [];
    this.#isPending = false;
    return caused;
  }
}

function mayConcernPictures({ code, status, message }: ModelError): boolean {
  if (code === 'contextTooLong') return status === 413;
  const isRefusal = code === 'upstreamRejected' && status !== undefined && pictureStatuses.has(status);
  return isRefusal || ((code === 'upstreamRejected' || code === 'upstreamFailed') && pictureWords.test(message));
}

function picturesOf(message: ModelMessage): readonly ContentPart[] {
  return 'content' in message ? message.content.filter(({ type }) => type === 'image') : [];
}

const hasPicture = (message: ModelMessage): boolean => picturesOf(message).length > 0;

function withoutPictures(message: ModelMessage): ModelMessage {
  if (!hasPicture(message) || !('content' in message)) return message;
  return { ...message, content: message.content.map((part) => (part.type === 'image' ? refusedPicture : part)) };
}

/** Statuses of services for a request with a declaration that they do not take. */
const declarationStatuses: ReadonlySet<number> = new Set([400, 422]);
const place = String.raw`(?:\[|\.|/|['"],\s*)(\d+)\b`;
/** A refusal that points into the conversation does not concern a declaration. */
const conversationPlace = new RegExp(String.raw`\b(?:messages|contents|input)${place}`);
/** Places of a declaration in the request. The list of Google is inside of an element of `tools`, so its pattern comes first. */
const declarationPlaces = [
  new RegExp(String.raw`\bfunction_?declarations${place}`, 'i'),
  new RegExp(String.raw`\btools${place}`),
];
const declarationWords = /\b(?:tools?|functions?|(?:input_)?schema|parameters|declarations?)\b/i;
const quotes = '\'"`‘’“”';
const calledName = new RegExp(
  String.raw`\b(?:tool|function)s?(?:[ _]named?)?\s*[:=[.]?\s*([${quotes}]?)([\w.-]+)`,
  'gi',
);
const quotedWord = new RegExp(`[${quotes}]([^${quotes}]+)[${quotes}]`, 'g');

/** Name of the tool whose declaration the service refuses. @param names offered tools in the order of the request */
export function refusedTool(
  { code, status, message, refusedFields }: ModelError,
  names: readonly string[],
): string | undefined {
  if (code !== 'upstreamRejected' || status === undefined || !declarationStatuses.has(status)) return undefined;
  if ([message, ...refusedFields].some((text) => conversationPlace.test(text))) return undefined;
  const named = called(message, names) ?? atPlace(message, names);
  if (named !== undefined) return named;
  for (const field of refusedFields) {
    // A tool may have the name of a part of each request.
    const isNamed = declarationWords.test(message) && names.includes(field);
    const found = called(field, names) ?? atPlace(field, names) ?? (isNamed ? field : undefined);
    if (found !== undefined) return found;
  }
  return onlyQuoted(message, names);
}

/** Offered tool that the text calls a tool or function. A name without quotes could be a word of the sentence. */
function called(text: string, names: readonly string[]): string | undefined {
  for (const [, quote = '', word = ''] of text.matchAll(calledName)) {
    const name = word.replace(/\.$/, '');
    if (names.includes(name) && (quote !== '' || /[\d_.-]|[a-z][A-Z]/.test(name))) return name;
  }
  return undefined;
}

function atPlace(text: string, names: readonly string[]): string | undefined {
  for (const pattern of declarationPlaces) {
    const index = pattern.exec(text)?.[1];
    if (index !== undefined) return names[Number(index)];
  }
  return undefined;
}

function onlyQuoted(text: string, names: readonly string[]): string | undefined {
  if (!declarationWords.test(text)) return undefined;
  const quoted = new Set(Array.from(text.matchAll(quotedWord), ([, word]) => word));
  const [only, ...others] = names.filter((name) => quoted.has(name));
  return others.length === 0 ? only : undefined;
}
