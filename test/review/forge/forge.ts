import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Faults } from './faults.ts';
import { changedFiles, commitFiles, createBare, refOf, setRef } from './git.ts';
import { type DeliveryOptions, Hooks } from './hooks.ts';
import {
  ForgeApp,
  type ForgeCheckRun,
  type ForgeComment,
  type ForgeDelivery,
  type ForgeInstallation,
  type ForgePull,
  ForgeRepository,
  type ForgeToken,
  shaOf,
} from './model.ts';
import { checkRunPayload, commentPayload, installationPayload, pullPayload } from './payloads.ts';
import type { Json } from './schema.ts';
import { serve } from './serve.ts';

export interface ForgeOptions {
  /** Where REST begins: `/api/v3` is GitHub Enterprise. */
  readonly prefix?: string;
  /** False for load: answers are not held against GitHub's description. */
  readonly validates?: boolean;
}

/**
 * GitHub, as far as reviews need it: real HTTP, real git, real signatures. Sends events as webhooks if the App has one
 * (`app.hook.url`). For tests only.
 */
export class Forge {
  readonly app = new ForgeApp();
  readonly faults = new Faults();
  readonly installations = new Map<number, ForgeInstallation>();
  readonly tokens = new Map<string, ForgeToken>();
  /** Requests in order: `GET /repos/…` with the status of the response; null for git and without a response. */
  readonly requests: { readonly method: string; readonly path: string; readonly status: number | null }[] = [];
  /** Answers that are not as GitHub describes them: must stay empty. */
  readonly mistakes: string[] = [];
  readonly children = new Set<ChildProcess>();
  readonly prefix: string;
  readonly validates: boolean;
  /** Our clock is so much ahead of this machine's. */
  clockOffsetMs = 0;
  tokenFormat: 'classic' | 'stateless' = 'classic';
  tokenLifeMs: number | undefined;
  /** Lag of lists behind writes, in milliseconds. */
  listLagMs = 0;
  /** Requests that each installation may still make. */
  rateRemaining = 5_000_000;
  /** When they may again. */
  rateResetAt = 0;
  readonly #repositories = new Map<string, ForgeRepository>();
  readonly #listeners = new Set<() => void>();
  readonly #hooks = new Hooks(this.app, () => this.now());
  readonly #server: Server;
  #directory: string | undefined;
  #id = 1_000;
  #url = '';

  constructor({ prefix = '', validates = true }: ForgeOptions = {}) {
    this.prefix = prefix;
    this.validates = validates;
    this.#server = createServer((request, response) => void serve(this, request, response));
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.faults.clear();
    for (const child of this.children) child.kill();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#hooks.settled();
    if (this.#directory) rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Base of git, `URL/owner/name.git`, and of pages for people. */
  get url(): string {
    return this.#url;
  }
  get apiUrl(): string {
    return this.#url + this.prefix;
  }
  now(): number {
    return Date.now() + this.clockOffsetMs;
  }
  nextId(): number {
    this.#id += 1;
    return this.#id;
  }
  get repositories(): readonly ForgeRepository[] {
    return [...this.#repositories.values()];
  }
  repository(owner: string, name: string): ForgeRepository | undefined {
    return this.#repositories.get(`${owner}/${name}`.toLowerCase());
  }

  /** The owner installs the App, for all repositories. */
  install(owner: string): ForgeInstallation {
    const known = [...this.installations.values()].find((each) => each.owner === owner);
    if (known) return known;
    const made = { id: this.nextId(), owner, permissions: { ...this.app.permissions }, isSuspended: false };
    this.installations.set(made.id, made);
    for (const repo of this.repositories) if (repo.owner === owner) repo.installationId = made.id;
    this.#hooks.emit('installation', () => installationPayload(this, made, 'created'));
    return made;
  }

  uninstall(owner: string): void {
    for (const [id, each] of this.installations) {
      if (each.owner !== owner) continue;
      this.installations.delete(id);
      this.#hooks.emit('installation', () => installationPayload(this, each, 'deleted'));
    }
  }

  /** Without git, pull requests have the given commits and files. */
  addRepository(owner: string, name: string): ForgeRepository {
    return this.#add(owner, name);
  }

  /** With a bare repository behind it, and `files` on `main`. */
  async addGitRepository(
    owner: string,
    name: string,
    files: Readonly<Record<string, string>>,
  ): Promise<ForgeRepository> {
    this.#directory ??= mkdtempSync(join(tmpdir(), 'oratorio-forge-'));
    const directory = join(this.#directory, `${owner}-${name}.git`);
    await createBare(directory);
    await commitFiles(directory, 'main', files, { message: 'First' });
    return this.#add(owner, name, directory);
  }

  #add(owner: string, name: string, directory?: string): ForgeRepository {
    const made = new ForgeRepository(this.nextId(), owner, name, this.install(owner).id, directory);
    this.#repositories.set(`${owner}/${name}`.toLowerCase(), made);
    return made;
  }

  /** Opens a pull request and sends its webhook; with git its head is the branch `headRef`. */
  async openPull(repo: ForgeRepository, own: Partial<ForgePull> & { readonly number: number }): Promise<ForgePull> {
    const made = this.addPull(repo, own);
    if (repo.gitDirectory) await this.#readHead(repo, repo.gitDirectory, made);
    this.#deliver(repo, made, 'opened');
    return made;
  }

  /** Adds a pull request without reading git or sending a webhook. */
  addPull(repo: ForgeRepository, own: Partial<ForgePull> & { readonly number: number }): ForgePull {
    const headSha = own.headSha ?? shaOf(`${repo.owner}/${repo.name}#${own.number}`);
    const made: ForgePull = {
      title: `Change ${own.number}`,
      body: '',
      author: 'ada',
      authorAssociation: 'MEMBER',
      state: 'open',
      isMerged: false,
      isDraft: false,
      isFork: false,
      labels: [],
      baseRef: 'main',
      baseSha: shaOf('base'),
      headRef: 'change',
      updatedAt: this.now(),
      files: [],
      filesAt: new Map(),
      ...own,
      headSha,
      commits: [headSha],
    };
    repo.pulls.set(made.number, made);
    repo.version += 1;
    return made;
  }

  /** The head is now `headSha`, or with git the commit of its branch. */
  async push(
    repo: ForgeRepository,
    number: number,
    change: Partial<Pick<ForgePull, 'headSha' | 'files'>> = {},
  ): Promise<ForgePull> {
    const pull = this.pull(repo, number);
    const before = pull.headSha;
    pull.filesAt.set(before, pull.files);
    if (repo.gitDirectory) await this.#readHead(repo, repo.gitDirectory, pull);
    else Object.assign(pull, change);
    pull.commits.push(pull.headSha);
    this.touch(repo, number);
    this.#deliver(repo, pull, 'synchronize', { before, after: pull.headSha });
    return pull;
  }

  async #readHead(repo: ForgeRepository, directory: string, pull: ForgePull): Promise<void> {
    const headSha = refOf(directory, `refs/heads/${pull.headRef}`);
    const baseSha = refOf(directory, `refs/heads/${pull.baseRef}`);
    setRef(directory, `refs/pull/${pull.number}/head`, headSha);
    Object.assign(pull, { headSha, baseSha, files: await changedFiles(directory, baseSha, headSha) });
    pull.commits.push(headSha);
    repo.version += 1;
  }

  /** @param change - changed fields of the pull request @param more - further fields of the payload, such as `changes` of an edit */
  act(repo: ForgeRepository, number: number, action: string, change: Partial<ForgePull>, more: Json = {}): void {
    this.touch(repo, number, change);
    this.#deliver(repo, this.pull(repo, number), action, more);
  }

  #deliver(repo: ForgeRepository, pull: ForgePull, action: string, more: Json = {}): void {
    this.#hooks.emit('pull_request', () => pullPayload(this, repo, pull, action, more));
  }

  pull(repo: ForgeRepository, number: number): ForgePull {
    const pull = repo.pulls.get(number);
    if (!pull) throw new Error(`There is no pull request ${number}`);
    return pull;
  }

  /** Changes a pull request without sending a webhook. */
  touch(repo: ForgeRepository, number: number, change: Partial<ForgePull> = {}): void {
    const pull = repo.pulls.get(number);
    if (!pull) return;
    Object.assign(pull, { updatedAt: Math.max(this.now(), pull.updatedAt + 1_000) }, change);
    repo.version += 1;
  }

  /** A comment by a user or the App on a pull request. A member may write to the repository, unless set otherwise. */
  comment(
    repo: ForgeRepository,
    number: number,
    author: string,
    body: string,
    association = author === this.app.login ? 'NONE' : 'MEMBER',
  ): ForgeComment {
    const own = { id: this.nextId(), number, author, association, body, reactions: [] };
    const login = author.toLowerCase();
    if (association === 'MEMBER' && !repo.collaborators.has(login)) repo.collaborators.set(login, 'write');
    const made: ForgeComment = { ...own, edits: 0, createdAt: this.now() };
    repo.comments.push(made);
    this.touch(repo, number);
    this.#hooks.emit('issue_comment', () => commentPayload(this, repo, made));
    return made;
  }

  /** Sends the webhook for the re-request of a check run. */
  rerequest(repo: ForgeRepository, run: ForgeCheckRun): void {
    this.#hooks.emit('check_run', () => checkRunPayload(this, repo, run, 'rerequested'));
  }

  get deliveries(): readonly ForgeDelivery[] {
    return this.#hooks.deliveries;
  }

  /** Signs and sends a webhook as GitHub does, and keeps it among the deliveries. @returns status; 0: no connection */
  deliver(event: string, payload: string | Json, options: DeliveryOptions = {}): Promise<number> {
    return this.#hooks.deliver(event, payload, options);
  }

  /** Resolves when every webhook has been answered, or has failed. */
  settled(): Promise<void> {
    return this.#hooks.settled();
  }

  /** A request was answered, or nearly: `listener` may check the result. @returns ends it */
  onRequest(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  note(method: string, path: string, status: number | null): void {
    this.requests.push({ method, path, status });
    for (const listener of this.#listeners) listener();
  }

  /** How often something was asked for. */
  count(method: string, path: RegExp): number {
    return this.requests.filter((each) => each.method === method && path.test(each.path)).length;
  }
}
