/** A decision and its place in words: names of the clients in `decidedBy`. Needs no Node and no valibot: the page uses it. */
const places: Readonly<Record<string, string>> = {
  'oratorio-cli': 'terminal',
  'oratorio-acp': 'editor',
  'oratorio-page': 'page',
};

const placeWords: Readonly<Record<string, string>> = {
  terminal: 'in the terminal',
  page: 'on a page',
  editor: 'in an editor',
};

/** The place of a decision in words that complete “Allowed …”: `in the terminal`. */
export const placeInWords = (decidedBy: string): string => lookUp(placeWords, decidedBy) ?? `by ${decidedBy}`;

/** The place of a client, in the words of `decidedBy`. No client poses as a decision without a user. */
export const placeOf = (client: string): string =>
  lookUp(places, client) ?? (/^(agent|policy|timeout)$/.test(client) ? `client ${client}` : client);

/** Whether a decision lets the work continue. */
export const isAllowed = (decision: string): boolean => decision.startsWith('accept') || decision === 'now';

/** `Allowed`, `Answered`, `Declined` */
export function decisionWord(decision: string, requestId: string): string {
  if (!isAllowed(decision)) return 'Declined';
  return requestId.startsWith('question_') ? 'Answered' : 'Allowed';
}

function lookUp(words: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(words, name) ? words[name] : undefined;
}
