"""Skills to get lost among: generated, the same ones every time, each about a thing that somebody could want."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

ACTIVITIES = {
    "sync": ("Keeps {thing} in step with {place}", "two-way sync, conflicts and a log of what moved"),
    "importer": ("Imports {thing} from {place}", "mapping of fields, encodings, a dry run and an undo"),
    "exporter": ("Exports {thing} to {place}", "formats, filters, schedules and file names"),
    "auditor": ("Audits {thing} in {place}", "rules, severity, evidence and a report with fixes"),
    "planner": ("Plans {thing} for {place}", "goals, calendar, owners, budget and risks"),
    "notifier": ("Sends alerts about {thing} to {place}", "thresholds, quiet hours and digests by mail or chat"),
    "designer": ("Designs {thing} for {place}", "layout, colours, type, templates and a review"),
    "coach": ("Coaches people on {thing} in {place}", "exercises, feedback, examples and a weekly plan"),
    "reporter": ("Writes reports on {thing} for {place}", "charts, tables, a summary for the boss and sources"),
    "migrator": ("Migrates {thing} to {place}", "inventory, batches, checks before and after, and rollback"),
    "tester": ("Tests {thing} against {place}", "cases, fixtures, edge conditions and flaky runs"),
    "optimizer": ("Makes {thing} in {place} faster and cheaper", "profiles, caching, limits and a before and after"),
    "summarizer": ("Summarises {thing} from {place}", "key points, quotes, decisions and open questions"),
    "translator": ("Translates {thing} for {place}", "glossary, tone, placeholders and a second reading"),
    "scraper": ("Collects {thing} from {place}", "pages, selectors, politeness and duplicates"),
    "generator": ("Generates {thing} for {place}", "templates, variants, names and checks of the result"),
    "debugger": ("Finds out why {thing} fail in {place}", "logs, reproduction, causes and a fix"),
    "archiver": ("Archives {thing} from {place}", "retention, compression, an index and restore"),
    "estimator": ("Estimates {thing} for {place}", "assumptions, ranges, history and a comparison with the outcome"),
    "classifier": ("Sorts {thing} from {place} into categories", "labels, examples, confidence and corrections"),
}
THINGS_TEXT = """invoices;receipts;contracts;customer orders;support tickets;e-mail threads;newsletters;blog posts;press releases;
product photos;short videos;podcast episodes;voice notes;meeting transcripts;slide decks;spreadsheets;PDF forms;Word templates;
survey answers;job applications;employee reviews;onboarding checklists;training courses;quiz questions;lesson plans;research papers;lab results;
patient records;gene sequences;molecule structures;sensor readings;firmware images;circuit boards;3D models;floor plans;maps and routes;
flight bookings;hotel stays;recipes;workouts;budgets;tax filings;bank statements;stock portfolios;insurance claims;
legal briefs;patents;privacy notices;cookies;user sessions;passwords and keys;access rights;API endpoints;GraphQL schemas;
SQL queries;database tables;log files;metrics;traces;feature flags;release notes;commit histories;pull requests;
unit tests;browser tests;Docker images;Kubernetes manifests;Terraform modules;build pipelines;npm packages;Python wheels;Rust crates;
mobile screens;React components;CSS themes;icons;logos;posters;animations;game levels;sound effects;
song lyrics;story outlines;screenplays;poems;translations;glossaries;FAQ pages;landing pages;ad campaigns;
keywords;social posts;hashtags;competitor prices;sales leads;CRM contacts;calendar events;to-do lists;shopping lists;
inventories;shipments;warehouse bins;machine parts;energy bills;weather data;air quality;satellite images;traffic counts;
election results;court rulings;museum objects;family trees;chess games;sports scores;wine cellars;garden beds;pet health notes""".replace( "\n", "" ).split(";
") PLACES = """Notion;Airtable;Slack;Microsoft Teams;Discord;Gmail;Outlook;Google Drive;Dropbox;
SharePoint;Confluence;Jira;Linear;Trello;Asana;GitHub;GitLab;Bitbucket;
Salesforce;HubSpot;Zendesk;Intercom;Shopify;WooCommerce;Stripe;PayPal;QuickBooks;
Xero;SAP;Workday;Snowflake;BigQuery;Redshift;PostgreSQL;MongoDB;Elasticsearch;
Redis;Kafka;AWS;Azure;Google Cloud;Cloudflare;Vercel;WordPress;Webflow;
Figma;Canva;YouTube;Spotify;TikTok;LinkedIn;Telegram;WhatsApp;schools;
hospitals;law firms;restaurants;farms;city councils;charities"""
THINGS = [part.strip() for part in THINGS_TEXT.split(";")]
HINTS = (
    "Use when {thing} pile up and somebody has to deal with them.",
    "Use it for {thing} that come from {place}.",
    "Trigger on questions about {thing}.",
    "Not for anything other than {thing}.",
    "",
)
STEPS = (
    "Ask which {thing} are meant, for which period and who reads the result.",
    "Connect to {place} with the least rights that will do.",
    "Begin with ten {thing}, show them, and only then go on.",
    "Keep a log of each step so that it can be undone.",
    "Check counts and totals against {place} at the end.",
    "Say what was left out, and why.",
)


def texts(count: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """(name, SKILL.md) of *count* different skills."""
    chosen = random.Random(seed)
    combinations = [(t, p, a) for t in THINGS for p in PLACES for a in ACTIVITIES]
    names: set[str] = set()
    for thing, place, activity in chosen.sample(combinations, min(len(combinations), count + count // 5)):
        name = "-".join(f"{thing} {place} {activity}".lower().replace("3d", "three-d").split())[:64].strip("-")
        if name in names:
            continue
        names.add(name)
        what, how = ACTIVITIES[activity]
        hint = chosen.choice(HINTS).format(thing=thing, place=place)
        steps = chosen.sample(STEPS, 4)
        description = f"{what.format(thing=thing, place=place)}: {how}. {hint}".strip()
        body = "\n".join(f"{n}. {step.format(thing=thing, place=place)}" for n, step in enumerate(steps, start=1))
        yield name, f"---\nname: {name}\ndescription: '{description}'\n---\n\n# {name}\n\n## Steps\n\n{body}\n"
        if len(names) == count:
            return


def write(folder: Path, count: int) -> None:
    """Lay *count* generated skills down below *folder*."""
    for name, text in texts(count):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
