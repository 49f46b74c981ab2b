import { reviewToolSchema } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import type { JSONRPCMessage, Tool } from './library.ts';

/** A tool of a server that is left out, or offered without a part of its definition. */
export interface ToolProblem {
  /** Name of the tool; empty: the list itself. */
  readonly tool: string;
  /** Field and reason, in a sentence. */
  readonly problem: string;
  readonly isOffered: boolean;
}

type JsonEntry = Readonly<Record<string, unknown>>;
type ReviewEntry = (
  entry: JsonEntry,
  report: (problem: ToolProblem) => void,
  runsTasks: boolean,
) => JsonEntry | undefined;

/** Lists of the protocol: the field with the entries, and the check of one entry. */
const lists: Readonly<Record<string, { readonly field: string; readonly review: ReviewEntry }>> = {
  'tools/list': { field: 'tools', review: reviewTool },
  'resources/list': { field: 'resources', review: (entry) => described(entry, 'uri') },
  'resources/templates/list': { field: 'resourceTemplates', review: (entry) => described(entry, 'uriTemplate') },
  'prompts/list': { field: 'prompts', review: (entry) => described(entry) },
};

interface Walk {
  readonly cursors: Set<string>;
  readonly startedAt: number;
  readonly problems: ToolProblem[];
  entries: number;
}

interface AskedPage {
  readonly method: string;
  readonly cursor: string | undefined;
}

/**
 * Checks the pages of a server's lists before the library reads them: the library accepts a list as a whole or not at all. Each
 * entry is checked alone. A cursor that is null, empty or repeated ends a list, and so do too many pages and the time limit.
 */
export class ListReview {
  readonly #limitMs: number;
  #runsTasks = false;
  readonly #asked = new Map<string | number, AskedPage>();
  readonly #walks = new Map<string, Walk>();

  /** @param limitMs of one list with all its pages */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** The server runs tools as tasks: those that need it are offered. */
  allowTasks(): void {
    this.#runsTasks = true;
  }

  /** Problems of the latest list of tools. */
  get toolProblems(): readonly ToolProblem[] {
    return this.#walks.get('tools/list')?.problems ?? [];
  }

  /** Notes a message to the server. */
  sent(message: JSONRPCMessage): void {
    if (!('method' in message && 'id' in message) || !Object.hasOwn(lists, message.method)) return;
    const { method, id, params } = message;
    const cursor = params?.['cursor'];
    const page = { method, cursor: typeof cursor === 'string' ? cursor : undefined };
    if (page.cursor === undefined || !this.#walks.has(method)) {
      this.#walks.set(method, { cursors: new Set(), startedAt: performance.now(), problems: [], entries: 0 });
    }
    if (page.cursor !== undefined) this.#walks.get(method)?.cursors.add(page.cursor);
    this.#asked.set(id, page);
  }

  /** The message as the library may read it. */
  received(message: JSONRPCMessage): JSONRPCMessage {
    if ('method' in message || message.id === undefined) return message;
    const page = this.#asked.get(message.id);
    this.#asked.delete(message.id);
    const walk = page && this.#walks.get(page.method);
    if (!page || !walk) return message;
    if ('result' in message && typeof message.result === 'object' && message.result !== null) {
      return { ...message, result: this.#page(message.result as JsonEntry, page, walk) };
    }
    if (!('error' in message) || page.cursor === undefined) return message;
    // The first pages are of use without the rest.
    walk.problems.push(ofList(`ended with an error: ${message.error.message}`));
    return {
      jsonrpc: '2.0',
      id: message.id,
      result: this.#page({ resultType: 'complete' }, page, walk),
    } as JSONRPCMessage;
  }

  #page({ nextCursor, ...result }: JsonEntry, { method }: AskedPage, walk: Walk): JsonEntry {
    const list = lists[method];
    if (!list) return result;
    const given = result[list.field];
    if (!Array.isArray(given) && !('resultType' in result && given === undefined)) {
      walk.problems.push(ofList(`must have a list ${list.field}`));
    }
    const entries = (Array.isArray(given) ? given : []).flatMap((entry, index) => {
      if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) {
        return list.review(entry as JsonEntry, (problem) => walk.problems.push(problem), this.#runsTasks) ?? [];
      }
      walk.problems.push(ofList(`has an entry ${walk.entries + index + 1} that is not an object`));
      return [];
    });
    walk.entries += entries.length;
    return {
      ...result,
      [list.field]: entries,
      ...this.#next(nextCursor, walk),
      ...('resultType' in result && cacheFields(result)),
    };
  }

  #next(cursor: unknown, walk: Walk): { readonly nextCursor?: string } {
    if (typeof cursor !== 'string' || cursor === '') return {};
    const { maxPages, maxTools } = defaults.mcp;
    if (walk.cursors.has(cursor)) walk.problems.push(ofList('repeats a cursor; the entries before it are used'));
    else if (walk.cursors.size + 1 >= maxPages || walk.entries > maxTools) {
      walk.problems.push(ofList(`does not end; its first ${walk.entries} entries are used`));
    } else if (performance.now() - walk.startedAt > this.#limitMs) {
      walk.problems.push(ofList(`takes too long; its first ${walk.entries} entries are used`));
    } else return { nextCursor: cursor };
    return {};
  }
}

const ofList = (problem: string): ToolProblem => ({ tool: '', problem: `The list ${problem}.`, isOffered: true });

/** Fields that the newer era requires; without them nothing is cached. */
const cacheFields = ({ ttlMs, cacheScope }: JsonEntry): JsonEntry => ({
  ttlMs: Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 0 ? ttlMs : 0,
  cacheScope: cacheScope === 'public' ? cacheScope : 'private',
});

const longestName = 256;
const texts = ['title', 'description', 'mimeType'] as const;

/** The fields that are used, where they are texts; undefined without a name, or without the address in `key`. */
function described(entry: JsonEntry, key?: 'uri' | 'uriTemplate'): JsonEntry | undefined {
  const { name } = entry;
  if (typeof name !== 'string' || name === '' || name.length > longestName) return undefined;
  if (key !== undefined && typeof entry[key] !== 'string') return undefined;
  const { arguments: parameters } = entry;
  return {
    name,
    ...(key !== undefined && { [key]: entry[key] }),
    ...Object.fromEntries(texts.flatMap((field) => (typeof entry[field] === 'string' ? [[field, entry[field]]] : []))),
    ...(Array.isArray(parameters) && { arguments: parameters.flatMap((each: unknown) => parameterOf(each) ?? []) }),
  };
}

/** Argument of a prompt. */
function parameterOf(given: unknown): JsonEntry | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { name, description, required } = given as JsonEntry;
  if (typeof name !== 'string') return undefined;
  return { name, ...(typeof description === 'string' && { description }), required: required === true };
}

function reviewTool(
  entry: JsonEntry,
  report: (problem: ToolProblem) => void,
  runsTasks: boolean,
): JsonEntry | undefined {
  const tool = described(entry);
  if (!tool) {
    report(ofList(`has a tool whose name is not a text of 1 to ${longestName} characters`));
    return undefined;
  }
  const name = String(tool['name']);
  const leaveOut = (problem: string) => void report({ tool: name, problem: sentence(problem), isOffered: false });
  const { annotations, execution } = entry as Partial<Tool>;
  const isTask = execution?.taskSupport === 'required';
  if (isTask && !runsTasks) return leaveOut('execution.taskSupport is "required", but the server runs no tasks');
  const { schema, problems } = reviewToolSchema(entry['inputSchema']);
  const [first] = problems;
  if (!schema) return leaveOut(first);
  if (first !== undefined) report({ tool: name, problem: sentence(first), isOffered: true });
  const title = annotations?.title;
  return {
    ...tool,
    inputSchema: schema,
    ...(isTask && { execution: { taskSupport: 'required' } }),
    annotations: { readOnlyHint: annotations?.readOnlyHint === true, ...(typeof title === 'string' && { title }) },
  };
}

const sentence = (problem: string): string => `${plainText(problem).slice(0, defaults.mcp.errorChars)}.`;
