import type { Node } from 'web-tree-sitter';
import { bashParser } from './grammar.ts';

/**
 * A shell script as far as it can be judged.
 * `plain`: these programs run with these words, in this order, and nothing else. `opaque`: the commands that run are not known.
 */
export interface Script {
  readonly kind: 'plain' | 'opaque';
  /** Words of every command in it, nested ones included; of an opaque script as far as they can be read. */
  readonly commands: readonly (readonly string[])[];
  /** Nothing could be parsed: the commands of an opaque script may be incomplete. */
  readonly isBroken: boolean;
}

/** Longest script that is parsed, in characters. */
const maxLength = 20_000;
/** Most commands of one script. */
const maxCommands = 200;

const plainNodes: ReadonlySet<string> = new Set([
  ...['program', 'list', 'pipeline', 'command', 'command_name', 'word', 'string', 'string_content', 'raw_string'],
  ...['number', 'concatenation', 'comment', 'redirected_statement', 'file_redirect', 'file_descriptor'],
]);
const plainOperators: ReadonlySet<string> = new Set(['&&', '||', ';', '|', '|&', '&', '\n', '"', '>', '>&']);
/** Redirections that change no file. */
const harmlessRedirects = /^(2>&1|1>&2|>&2|[12]?>\s*\/dev\/null|&>\s*\/dev\/null)$/;

/**
 * Parses a script. Accepts as `plain` only scripts that every shell understands the same way; the grammar is laxer than bash, so
 * an ambiguous text (backslashes, expansions, unusual blanks) is opaque.
 */
export async function parseScript(text: string): Promise<Script> {
  if (text.length > maxLength) return { kind: 'opaque', commands: [], isBroken: true };
  const parse = await bashParser();
  return parse(text, (root) => {
    const commands = wordsOf(root);
    const isBroken = root.hasError || commands === undefined;
    const isPlain = !isBroken && !hasOddCharacters(text) && isPlainNode(root) && onlyBlanksBetween(root, text);
    return { kind: isPlain ? 'plain' : 'opaque', commands: commands ?? [], isBroken };
  });
}

/** Carriage returns, NUL, other control characters, and blanks that the shell does not treat as blanks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression looks for them
const odd = /[\0-\x08\x0b-\x1f\x7f\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]/;

const hasOddCharacters = (text: string): boolean => odd.test(text) || !text.isWellFormed();

function isPlainNode(node: Node): boolean {
  if (node.isMissing || node.isError) return false;
  if (!node.isNamed) return plainOperators.has(node.type);
  if (!plainNodes.has(node.type)) return false;
  if (node.type === 'file_redirect') return harmlessRedirects.test(node.text);
  if (node.type === 'redirected_statement' && !hasSingleCommand(node)) return false;
  if (node.type === 'command' && !isPlainCommand(node)) return false;
  if (node.type === 'word' || node.type === 'number') return isPlainWord(node.text);
  if (node.type === 'string_content') return !/[\\`$]/.test(node.text);
  if (node.type === 'raw_string') return true;
  if (node.type === 'comment') return true;
  return node.children.every((child) => child !== null && isPlainNode(child));
}

/** A backslash or an expansion makes other words; `=` in front makes a variable; braces, globs and `~` expand. */
const isPlainWord = (word: string): boolean => !/[\\$`*?[\]{}~!]/.test(word) && !word.startsWith('#');

/** The words of a redirected command stand before its redirections: `a >/dev/null b` hides `b`. */
const hasSingleCommand = (node: Node): boolean => node.namedChildren[0]?.type === 'command';

/** The program is named by a plain word, without variables in front. */
function isPlainCommand(node: Node): boolean {
  const [first] = node.namedChildren;
  if (first?.type !== 'command_name') return false;
  const name = readWord(first);
  return name !== undefined && /^[\w./+-][\w./+:@%-]*$/.test(name) && !keywords.has(name);
}

/** Words that change how the shell reads the following words. */
const keywords: ReadonlySet<string> = new Set([
  ...[
    'if',
    'then',
    'else',
    'elif',
    'fi',
    'for',
    'while',
    'until',
    'do',
    'done',
    'case',
    'esac',
    'in',
    'select',
    'function',
  ],
  ...['time', 'coproc', '[[', ']]', '{', '}', '!'],
]);

/** Between the leaves all must be blank: the grammar skips unknown text. */
function onlyBlanksBetween(root: Node, text: string): boolean {
  let at = 0;
  const isBlank = (end: number): boolean => /^[ \t\n]*$/.test(text.slice(at, end));
  const visit = (node: Node): boolean => {
    // A word or a string is a leaf as a whole: its parts are read by `readWord`.
    if (node.childCount === 0 || node.type === 'string') {
      if (!isBlank(node.startIndex)) return false;
      at = node.endIndex;
      return true;
    }
    return node.children.every((child) => child !== null && visit(child));
  };
  return visit(root) && isBlank(text.length);
}

/** Words of all commands in a tree; undefined: too many. */
function wordsOf(root: Node): (readonly string[])[] | undefined {
  const nodes = root.descendantsOfType('command');
  if (nodes.length > maxCommands) return undefined;
  return nodes.flatMap((node) => {
    if (!node) return [];
    const words = node.namedChildren
      .filter((child) => child !== null && child.type !== 'variable_assignment')
      .filter((child) => !child?.type.endsWith('redirect'))
      .map((child) => (child ? (readWord(child) ?? child.text) : ''));
    return words.length > 0 ? [words] : [];
  });
}

/** Value of a word after quotes are removed; undefined: it cannot be known. */
function readWord(node: Node): string | undefined {
  switch (node.type) {
    case 'word':
    case 'number':
      return node.text.replace(/\\(.)/gs, '$1');
    case 'raw_string':
      return node.text.slice(1, -1);
    case 'string':
      return node.text
        .slice(1, -1)
        .replace(/\\([$`"\\\n])/g, (_, character: string) => (character === '\n' ? '' : character));
    case 'command_name':
    case 'concatenation':
      return node.namedChildren
        .map((child) => (child ? readWord(child) : undefined))
        .reduce<string | undefined>(
          (all, part) => (all === undefined || part === undefined ? undefined : all + part),
          '',
        );
    default:
      return undefined;
  }
}
