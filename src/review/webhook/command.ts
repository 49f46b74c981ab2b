import { limits } from './limits.ts';

/** Commands of a comment. */
export const commandVerbs = ['review', 'fullReview', 'pause', 'resume', 'resolve', 'cancel', 'status', 'help'] as const;
export type CommandVerb = (typeof commandVerbs)[number];

export interface Command {
  readonly verb: CommandVerb;
  /** Focus of a review; only of `review for …`. */
  readonly focus: string | null;
}

export type CommandSyntaxError =
  | 'githubCommentCommandMultiline'
  | 'githubCommentCommandVerbRequired'
  | 'githubCommentCommandArgumentsInvalid'
  | 'githubCommentCommandFocusRequired'
  | 'githubCommentCommandFocusTooLong';

export type ParsedCommand =
  /** The comment is not for us. */
  | { readonly kind: 'notCommand' }
  /** The comment begins like a command, but its verb is not one of ours: people talk about us as well. */
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'invalid'; readonly verb: CommandVerb | null; readonly errorCode: CommandSyntaxError }
  | { readonly kind: 'parsed'; readonly command: Command };

/** Format characters: zero-width ones, soft hyphens, marks that reverse the direction of the text. */
const invisible = /\p{Cf}/gu;
const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;
/** Control characters except the tab. */
const control = /[^\P{Cc}\t]/u;

/** Verbs by their words in lower case. */
const verbs: ReadonlyMap<string, CommandVerb> = new Map([
  ['review', 'review'],
  ['full review', 'fullReview'],
  ['pause', 'pause'],
  ['resume', 'resume'],
  ['resolve', 'resolve'],
  ['cancel', 'cancel'],
  ['status', 'status'],
  ['help', 'help'],
]);
const spoken = /^(full\s+review|\S+)(?:\s+([\s\S]*))?$/i;
/** GitHub shows the account of an App with this end. */
const suffixOfApp = /^\[bot\]/i;
/** Punctuation between the mention and the command, as in a letter: `@oratorio, pause`. */
const salutation = /^(?:[,:、]\s*|\s+(?:[-–—,:]\s+)?)(?=\S)/u;
const closing = /(?<![.,:;!?…。、])[.,:;!?…。、]+$/u;

/** Line that begins the quoted mail, or the signature, below a reply: `-- `, `-----Original Message-----`, `_____`. */
const delimiter = /^(?:--|-{5,}.*|_{5,})$/;
/** Lines of an attribution: “On …, Ada <…> wrote:”, in any language. */
const attributionLines = 3;

/** Whether the lines below a command are only a quoted mail or a signature. */
function isQuotation(below: string): boolean {
  const lines = below.split(/\r\n|[\n\r]/).map((line) => line.trim());
  const cut = lines.findIndex((line) => delimiter.test(line));
  const shown = lines.slice(0, cut === -1 ? undefined : cut).filter((line) => line !== '');
  const quote = shown.findIndex((line) => line.startsWith('>'));
  const attribution = shown.slice(0, quote === -1 ? undefined : quote);
  if (attribution.length > attributionLines || shown.slice(attribution.length).some((line) => !line.startsWith('>')))
    return false;
  return attribution.length === 0 || (quote !== -1 && attribution.at(-1)?.endsWith(':') === true);
}

/** First line of a reply by mail; the whole text when it has other lines below. */
function withoutQuotation(text: string): string {
  const [, first = '', below = ''] = /^([^\n\r]*)[\n\r]([\s\S]*)$/.exec(text) ?? [];
  return first !== '' && isQuotation(below) ? first.trim() : text;
}

/**
 * Reads a whole comment as one command: `@handle review`, `review for <focus>`, `full review`, `pause`, `resume`, `resolve`,
 * `cancel`, `status`, `help`. Verb and handle in any case, with punctuation as in prose, on one line with at most the mail that it
 * replies to below, NFKC, invisible characters taken out.
 *
 * @param body unchanged comment of the source
 * @param handle name after the @ of a mention
 */
export function parseCommand(body: string, handle: string): ParsedCommand {
  const text = withoutQuotation(body.normalize('NFKC').replace(invisible, '').trim());
  const mention = `@${handle.normalize('NFKC')}`;
  if (handle === '' || text.slice(0, mention.length).toLowerCase() !== mention.toLowerCase())
    return { kind: 'notCommand' };
  const rest = text.slice(mention.length).replace(suffixOfApp, '');
  if (rest.replace(closing, '') === '') return invalid(null, 'githubCommentCommandVerbRequired');
  const spoken = rest.replace(salutation, '');
  return spoken === rest ? { kind: 'notCommand' } : parseWords(spoken.trim());
}

function parseWords(text: string): ParsedCommand {
  const alone = lineBreak.test(text) ? '' : text.replace(closing, '').trim().replace(/\s+/g, ' ').toLowerCase();
  const wordless = verbs.get(alone);
  if (wordless !== undefined) return { kind: 'parsed', command: { verb: wordless, focus: null } };
  const [, words = '', given = ''] = spoken.exec(text) ?? [];
  const verb = verbs.get(words.toLowerCase().replace(/\s+/, ' '));
  if (verb === undefined) return { kind: 'unsupported' };
  if (lineBreak.test(text)) return invalid(verb, 'githubCommentCommandMultiline');
  if (control.test(text)) return invalid(verb, 'githubCommentCommandArgumentsInvalid');
  return verb === 'review' ? withFocus(given) : invalid(verb, 'githubCommentCommandArgumentsInvalid');
}

function withFocus(given: string): ParsedCommand {
  const found = /^for(?:\s+(.+))?$/isu.exec(given);
  if (!found) return invalid('review', 'githubCommentCommandArgumentsInvalid');
  const focus = found[1] ?? '';
  if (focus === '') return invalid('review', 'githubCommentCommandFocusRequired');
  if ([...focus].length > limits.focusCodePoints) return invalid('review', 'githubCommentCommandFocusTooLong');
  return { kind: 'parsed', command: { verb: 'review', focus } };
}

const invalid = (verb: CommandVerb | null, errorCode: CommandSyntaxError): ParsedCommand => ({
  kind: 'invalid',
  verb,
  errorCode,
});
