import type { ModelError } from '../../model.ts';

/** Statuses of services for a request with a declaration that they do not take. */
const refusingStatuses: ReadonlySet<number> = new Set([400, 422]);
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
  if (code !== 'upstreamRejected' || status === undefined || !refusingStatuses.has(status)) return undefined;
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
