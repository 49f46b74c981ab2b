/** Configuration of git, read without git: settings that name programs and files, and settings that a repository from a command may have. */

export interface GitConfigEntry {
  /** `section.subsection.name`; section and name in lower case. */
  readonly key: string;
  /** Undefined: a name without a value, which means true. */
  readonly value: string | undefined;
}

export interface GitConfigText {
  readonly entries: readonly GitConfigEntry[];
  /** Every line has the simplest form, which cannot be read in two ways. */
  readonly isPlain: boolean;
}

const plainSection = /^\s*\[([A-Za-z0-9-]+)(?: "([^"\\\]]*)")?\]\s*$/;
/** Matches a line without spaces at its ends. */
const plainValue = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=([^"\\#;]*|\s*"[^"\\]*"))?$/;
const plainRemark = /^\s*(?:[#;].*)?$/;
const looseSection = /^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/;
const looseValue = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/s;

/** Reads a configuration. Reads the loose forms of git as far as a single line allows; the result is then not plain. */
export function parseGitConfig(text: string): GitConfigText {
  let isPlain = !/(?![\t\n])[\p{Cc}\ufffd]/u.test(text);
  const entries: GitConfigEntry[] = [];
  let section = '';
  const add = (name: string, value: string | undefined) =>
    entries.push({ key: `${section}.${name.toLowerCase()}`, value });
  for (let line of text.replaceAll(/\\\r?\n/g, '').split(/\r?\n/)) {
    if (plainRemark.test(line)) continue;
    const plain = plainSection.exec(line);
    const loose = plain ?? looseSection.exec(line);
    if (loose) {
      const [whole, name = '', subsection] = loose;
      section = name.toLowerCase() + (subsection === undefined ? '' : `.${subsection.replaceAll(/\\(.)/g, '$1')}`);
      if (plain) continue;
      isPlain = false;
      line = line.slice(whole.length);
      if (plainRemark.test(line)) continue;
    }
    const value = plainValue.exec(line.trim());
    if (value && section !== '') {
      add(value[1] ?? '', value[2]?.trim().replace(/^"(.*)"$/, '$1'));
      continue;
    }
    isPlain = false;
    const [, name, rest] = looseValue.exec(line) ?? [];
    if (name !== undefined) add(name, rest === undefined ? undefined : unquoted(rest));
  }
  return { entries, isPlain: isPlain && !text.includes('\\\n') };
}

/** A value with quotes, escapes and a remark at its end. */
function unquoted(text: string): string {
  let value = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at);
    if (sign === '"') isQuoted = !isQuoted;
    else if (sign === '\\') {
      at += 1;
      const next = text.charAt(at);
      value += { n: '\n', t: '\t', b: '\b' }[next] ?? next;
    } else if (!isQuoted && (sign === '#' || sign === ';')) break;
    else value += sign;
  }
  return value.trim();
}

/** Keys that start no program and name no file. A subsection is any text. */
const harmlessKeys: readonly RegExp[] = [
  /^core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|compression|untrackedcache|longpaths|sparsecheckout|sparsecheckoutcone|sharedrepository|commentchar|whitespace|bigfilethreshold|multipackindex|commitgraph|preloadindex|splitindex)$/,
  /^(?:user|author|committer)\.(?:name|email|useconfigonly)$/,
  /^init\.defaultbranch$/,
  /^branch\..*\.(?:merge|rebase|description|gh-[a-z-]+|vscode-[a-z-]+|github-[a-z-]+)$/s,
  /^branch\.(?:autosetupmerge|autosetuprebase|sort)$/,
  /^remote\..*\.(?:fetch|push|prune|prunetags|tagopt|partialclonefilter|promisor|mirror|skipfetchall|gh-resolved)$/s,
  /^submodule\..*\.(?:active|path|branch|ignore|fetchrecursesubmodules)$/s,
  /^submodule\.(?:active|recurse|fetchjobs)$/,
  /^extensions\.(?:objectformat|refstorage|partialclone|preciousobjects|worktreeconfig|compatobjectformat|noop)$/,
  /^push\.(?:default|autosetupremote|followtags)$/,
  /^pull\.(?:rebase|ff)$/,
  /^merge\.(?:ff|conflictstyle|renamelimit|renames|stat|autostash|directoryrenames)$/,
  /^rebase\.(?:autostash|autosquash|updaterefs|stat|missingcommitscheck)$/,
  /^fetch\.(?:prune|prunetags|parallel|writecommitgraph|recursesubmodules)$/,
  /^gc\.(?:auto|autodetach|autopacklimit|pruneexpire|reflogexpire|reflogexpireunreachable|writecommitgraph|packrefs)$/,
  /^maintenance\.(?:auto|strategy)$/,
  /^(?:commit|tag)\.gpgsign$/,
  /^commit\.(?:verbose|status)$/,
  /^(?:advice|color|column|status|pack|feature|versionsort)\..*$/s,
  /^diff\.(?:renames|renamelimit|algorithm|mnemonicprefix|noprefix|colormoved|indentheuristic|context|wordregex)$/,
  /^log\.(?:date|decorate|abbrevcommit|follow)$/,
  /^transfer\.(?:fsckobjects|hiderefs)$/,
  /^receive\.(?:denycurrentbranch|denynonfastforwards|denydeletes|fsckobjects)$/,
  /^(?:receive|uploadpack)\.(?:allowfilter|allowanysha1inwant|allowreachablesha1inwant|advertisepushoptions)$/,
  /^lfs\.(?:repositoryformatversion|.*\.(?:access|locksverify))$/s,
  /^filter\.lfs\.required$/,
];

/** Keys whose value may be an address. */
const addressKeys =
  /^remote\..*\.(?:url|pushurl)$|^submodule\..*\.url$|^branch\..*\.(?:push)?remote$|^remote\.pushdefault$/s;

const lfsValues: Readonly<Record<string, readonly string[]>> = {
  'filter.lfs.clean': ['git-lfs clean -- %f'],
  'filter.lfs.smudge': ['git-lfs smudge -- %f', 'git-lfs smudge --skip -- %f'],
  'filter.lfs.process': ['git-lfs filter-process', 'git-lfs filter-process --skip'],
};

/**
 * Whether a repository that a command made may keep an entry: with no value of it does git run a program or use another file.
 *
 * @param isInside whether a path, relative to the git directory, lies in the workspace
 */
export function isHarmless({ key, value = 'true' }: GitConfigEntry, isInside: (path: string) => boolean): boolean {
  if (/\p{Cc}/u.test(key + value)) return false;
  if (addressKeys.test(key)) {
    if (/^-|^[\w+.-]*::/.test(value)) return false;
    // Git runs hooks of a repository on this machine that it pushes to.
    const [, local] = /^(?:file:\/\/)?(~?\/.*|\.\.?(?:\/.*)?)$/s.exec(value) ?? [];
    return local === undefined || isInside(local.startsWith('.') ? `../${local}` : local);
  }
  if (/^submodule\..*\.update$/.test(key)) return /^(?:checkout|rebase|merge|none)$/.test(value);
  if (key === 'core.worktree') return isInside(value);
  if (lfsValues[key]?.includes(value)) return true;
  return harmlessKeys.some((pattern) => pattern.test(key));
}

/** Text of a configuration with these entries. */
export function writeGitConfig(entries: readonly GitConfigEntry[]): string {
  return entries
    .map(({ key, value }) => {
      const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')];
      const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
      const subsection = first === last ? '' : ` ${quoted(key.slice(first + 1, last))}`;
      const line = value === undefined ? '' : ` = ${quoted(value)}`;
      return `[${key.slice(0, first)}${subsection}]\n\t${key.slice(last + 1)}${line}\n`;
    })
    .join('');
}

/** Keys whose value names a file that git reads. */
const fileKeys =
  /^(?:include|includeif\..*)\.path$|^core\.(?:attributesfile|excludesfile)$|^commit\.template$|^gpg\.ssh\.allowedsignersfile$|^mailmap\.file$|^blame\.ignorerevsfile$/s;
const directoryKeys = /^core\.hookspath$|^init\.templatedir$/;
/** Keys whose value is a command line. */
const commandKeys =
  /^core\.(?:fsmonitor|editor|pager|sshcommand|gitproxy|askpass|alternaterefscommand)$|^(?:diff|merge|filter|mergetool|difftool|man|browser|guitool|trailer)\..*\.(?:command|textconv|driver|clean|smudge|process|cmd|path)$|^diff\.external$|^sequence\.editor$|^gpg(?:\..*)?\.(?:program|defaultkeycommand)$|^credential(?:\..*)?\.helper$|^interactive\.difffilter$|^remote\..*\.(?:uploadpack|receivepack)$|^uploadpack\.packobjectshook$|^gc\.recentobjectshook$|^pager\.|^sendemail\..*cmd$|^submodule\..*\.update$|^hook\..*\.command$/s;

export interface GitConfigTargets {
  readonly files: readonly string[];
  readonly directories: readonly string[];
  /** Words of command lines that may be files. */
  readonly programs: readonly string[];
  /** Words among them that are paths of files, whether the files exist or not. */
  readonly surePrograms: readonly string[];
}

/** Paths that a configuration names, as written. */
export function targetsOf(entries: readonly GitConfigEntry[]): GitConfigTargets {
  const valuesOf = (keys: RegExp) =>
    entries.flatMap(({ key, value }) => (keys.test(key) && value !== undefined && value !== '' ? [value] : []));
  const aliases = valuesOf(/^alias\./).filter((value) => value.startsWith('!'));
  const lines = [...valuesOf(commandKeys), ...aliases].map((line) =>
    line.split(/[\s"'!;&|()<>=]+/).filter((word) => word !== ''),
  );
  return {
    files: valuesOf(fileKeys),
    directories: valuesOf(directoryKeys),
    // A first word without a directory is a program of `PATH`.
    programs: lines.flatMap((words) => words.filter((word, at) => at > 0 || word.includes('/'))),
    surePrograms: lines.flatMap((words) =>
      words.filter((word, at) => (at === 0 && word.includes('/')) || /^(?:~|\.{1,2})?\//.test(word)),
    ),
  };
}
