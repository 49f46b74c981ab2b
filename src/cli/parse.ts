import sade from 'sade';
import { closestOf } from '../lib/index.ts';
import type { CommandSpec, OptionSpec, OptionValues } from './command.ts';
import { commands } from './commands.ts';
import { usageError } from './errors.ts';

/** Parsed command line. */
export type Parsed =
  | {
      readonly kind: 'run';
      readonly command: CommandSpec;
      readonly argument: string | undefined;
      readonly options: OptionValues;
      readonly lists: Readonly<Record<string, readonly string[]>>;
    }
  /** Help of one command, of a group such as `server webhook`, or of the program. */
  | { readonly kind: 'help'; readonly command: CommandSpec | undefined; readonly group?: string }
  | { readonly kind: 'version' };

const commandNamed = (name: string): CommandSpec | undefined => commands.find((command) => command.name === name);

/** The command at the beginning of a line; if there are several, the one with the most words. */
function findCommand(argv: readonly string[]): CommandSpec | undefined {
  for (const words of [3, 2, 1]) {
    const found = argv.length < words ? undefined : commandNamed(argv.slice(0, words).join(' '));
    if (found) return found;
  }
  return undefined;
}

const isNegation = ({ name }: OptionSpec): boolean => name.startsWith('no-');
/** A switch with both forms, `--x` and `--no-x`: undefined while neither is given. */
const isEitherWay = ({ options }: CommandSpec, option: OptionSpec): boolean =>
  options.some(({ name }) => name === keyOf(option)) && options.some(({ name }) => name === `no-${keyOf(option)}`);

/** Key of the option's value. */
const keyOf = (option: OptionSpec): string => (isNegation(option) ? option.name.slice(3) : option.name);

/**
 * Declares the command line tool for sade. Every argument is optional for sade, which would end the process otherwise;
 * each command checks its own required arguments.
 */
export function program(version: string): sade.Sade {
  const prog = sade('oratorio').version(version);
  for (const { name, describe, argument, second, options, examples } of commands) {
    const words = [argument?.name, second?.value].flatMap((word) => (word === undefined ? [] : `[${word}]`));
    prog.command([name, ...words].join(' ')).describe([...describe]);
    for (const { name: option, alias, value, describe: text } of options) {
      prog.option(alias ? `-${alias}, --${option}` : `--${option}`, value ? `<${value}>  ${text}` : text);
    }
    for (const example of examples) prog.example(example);
  }
  return prog;
}

/**
 * Parses a command line strictly: an unknown option, a missing value or an extra argument is an error.
 *
 * @param argv without the interpreter and the program
 * @throws CliError `usage`
 */
export function parse(argv: readonly string[]): Parsed {
  const [first] = argv;
  if (first === undefined || first === '--help' || first === '-h') return { kind: 'help', command: undefined };
  if (first === '--version' || first === '-v' || first === '-V') return { kind: 'version' };
  if (first === 'help') return { kind: 'help', command: findCommand(argv.slice(1)), ...groupOf(argv.slice(1)) };
  if (first.startsWith('-')) throw usageError(`Options go after the command: ${first}`);
  const command = findCommand(argv);
  if (!command && asksForHelp(argv) && groupOf(argv) !== undefined)
    return { kind: 'help', command: undefined, ...groupOf(argv) };
  if (!command) throw unknownCommand(argv);
  const words = command.name.split(' ').length;
  const rest = argv.slice(words);
  if (asksForHelp(rest)) return { kind: 'help', command };
  return { kind: 'run', command, ...values(command, [...argv.slice(0, words), ...explicit(command, rest)]) };
}

/** Whether `--help` or `-h` is given as an option. */
function asksForHelp(words: readonly string[]): boolean {
  const options = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  return options.includes('--help') || options.includes('-h');
}

/** Names of the commands of a group, without the group's words. */
export const subcommandsOf = (group: string): readonly string[] =>
  commands.flatMap(({ name }) => (name.startsWith(`${group} `) ? [name.slice(group.length + 1)] : []));

/** The group that a line names: the longest one whose words it begins with. */
function groupOf(argv: readonly string[]): { readonly group: string } | undefined {
  const words = argv.filter((word) => !word.startsWith('-'));
  const group = [words.slice(0, 2).join(' '), words[0] ?? ''].find((each) => subcommandsOf(each).length > 0);
  return group === undefined ? undefined : { group };
}

/** Options that take a file, for which `-` means standard input. */
const takesFile = ({ value }: OptionSpec): boolean => value === 'file';
const flagsOf = ({ name, alias }: OptionSpec): readonly string[] => [`--${name}`, ...(alias ? [`-${alias}`] : [])];

/**
 * Gives switches the explicit value `true`: otherwise, mri takes the next word for their value, and makes a number
 * of it. A lone `-` joins the file option before it: mri takes it for an option.
 */
function explicit({ options }: CommandSpec, words: readonly string[]): string[] {
  const switches = new Set(
    options.filter((option) => option.value === undefined && !isNegation(option)).flatMap(flagsOf),
  );
  const files = new Set(options.filter(takesFile).flatMap(flagsOf));
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  return words.flatMap((word, index) => {
    const isOption = index < end;
    if (isOption && word === '-' && files.has(words[index - 1] ?? '')) return [];
    if (isOption && files.has(word) && words[index + 1] === '-') return [`${word}=-`];
    return [isOption && switches.has(word) ? `${word}=true` : word];
  });
}

function values(
  command: CommandSpec,
  argv: readonly string[],
): { argument: string | undefined; options: OptionValues; lists: Readonly<Record<string, readonly string[]>> } {
  const { options } = command;
  const [repeated, single] = [options.filter(({ repeats }) => repeats), options.filter(({ repeats }) => !repeats)];
  const parsed = program('').parse(['node', 'oratorio', ...argv], {
    lazy: true,
    string: options.filter(({ value }) => value !== undefined).map(keyOf),
    boolean: options.filter(({ value }) => value === undefined).map(keyOf),
    alias: Object.fromEntries(options.map((option) => [keyOf(option), option.alias ? [option.alias] : []])),
    unknown: (flag) => {
      throw usageError(`oratorio ${command.name} has no option ${flag}.`, command.name);
    },
  });
  const given: unknown[] = [...(parsed?.args ?? [])];
  const found = given.pop() as Readonly<Record<string, unknown>> & { readonly _: readonly unknown[] };
  const positionals = [...given, ...found._].filter((word) => word !== undefined).map(String);
  const { second } = command;
  const most = (command.argument ? 1 : 0) + (second ? 1 : 0);
  if (positionals.length > most) {
    throw usageError(`oratorio ${command.name} cannot use: ${positionals.slice(most).join(' ')}`, command.name);
  }
  const [argument, word] = positionals;
  const { argument: spec } = command;
  if (spec?.choices && argument !== undefined && !spec.choices.includes(argument)) {
    throw usageError(`<${spec.name}> must be one of ${spec.choices.join(', ')}.`, command.name);
  }
  return {
    argument,
    options: Object.fromEntries(
      single.map((option) => {
        const value = found[keyOf(option)] ?? (option === second ? word : undefined);
        return [keyOf(option), check(command, option, value)];
      }),
    ),
    lists: Object.fromEntries(repeated.map((option) => [option.name, checkEach(command, option, found[option.name])])),
  };
}

function checkEach(command: CommandSpec, option: OptionSpec, found: unknown): readonly string[] {
  const values: readonly unknown[] = found === undefined ? [] : [found].flat();
  return values.map((value) => String(check(command, option, value)));
}

function check(command: CommandSpec, option: OptionSpec, value: unknown): string | boolean | undefined {
  if (option.value === undefined && isEitherWay(command, option)) return typeof value === 'boolean' ? value : undefined;
  if (isNegation(option)) return value !== false;
  if (option.value === undefined) return value === true;
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw usageError(`--${option.name} is given more than once.`, command.name);
  if (value === '') throw usageError(`--${option.name} needs a value: <${option.value}>.`, command.name);
  if (option.choices && !option.choices.includes(value)) {
    throw usageError(`--${option.name} must be one of ${option.choices.join(', ')}.`, command.name);
  }
  return value;
}

/** A first word, or two, may need another one. */
function unknownCommand(argv: readonly string[]) {
  const [first = ''] = argv;
  for (const begun of [argv.slice(0, 2).join(' '), first]) {
    const nexts = subcommandsOf(begun);
    if (nexts.length > 0) return usageError(`oratorio ${begun} needs a subcommand: ${nexts.join(', ')}.`);
  }
  return usageError(`There is no command ${first}.${suggestion(first)}`);
}

/** Names of our commands in other tools. */
const otherNames: Readonly<Record<string, string>> = {
  ps: 'list',
  ls: 'list',
  status: 'list',
  start: 'up',
  run: 'exec',
  ask: 'exec',
  attach: 'chat',
  kill: 'stop',
  down: 'hub stop',
  quit: 'hub stop',
  ui: 'inspect',
  open: 'inspect',
  check: 'doctor',
};

/** The command of another name, or the closest one. */
function suggestion(word: string): string {
  const meant = Object.hasOwn(otherNames, word) ? otherNames[word] : undefined;
  if (meant !== undefined) return ` Did you mean ${meant}?`;
  const closest = closestOf(
    word,
    commands.map(({ name }) => name),
  );
  return closest === undefined ? '' : ` Did you mean ${closest}?`;
}
