// Tries to reach documents of Google's Firestore emulator as different users, under the rules that it was given.
//
// Reads one JSON object from stdin: `rules`, `documents` to create first, and `attempts`. Prints one JSON array: for
// each attempt "allowed", "denied", or the error. FIRESTORE_EMULATOR_HOST names the emulator; test_firestore_rules.py
// asserts on the output.
import { readFileSync } from "node:fs";
import { initializeTestEnvironment } from "@firebase/rules-unit-testing";
import { initializeApp, deleteApp } from "firebase/app";
import {
  collection, collectionGroup, connectFirestoreEmulator, deleteDoc, doc, getDoc, getDocs, getFirestore, setDoc,
  setLogLevel, updateDoc,
} from "firebase/firestore/lite";

const PROJECT = "rules-test";
const PARALLEL = 50;
const [host, port] = process.env.FIRESTORE_EMULATOR_HOST.split(":");
const plan = JSON.parse(readFileSync(0, "utf8"));
const parentOf = (path) => path.slice(0, path.lastIndexOf("/"));
setLogLevel("silent");

const environment = await initializeTestEnvironment({
  projectId: PROJECT,
  firestore: { host, port: Number(port), rules: plan.rules },
});

const apps = [];
const clients = new Map();

// The contexts of rules-unit-testing know the default database only, so the clients of all databases are made here.
function connect(database, mockUserToken) {
  const app = initializeApp({ projectId: PROJECT }, `app-${apps.length}`);
  apps.push(app);
  const client = getFirestore(app, database);
  connectFirestoreEmulator(client, host, Number(port), mockUserToken ? { mockUserToken } : {});
  return client;
}

function client(database, user) {
  const key = JSON.stringify([database, user]);
  if (!clients.has(key)) clients.set(key, connect(database, user && { sub: user.uid, ...user.claims }));
  return clients.get(key);
}

const operations = {
  get: (db, path) => getDoc(doc(db, path)),
  list: (db, path) => getDocs(collection(db, parentOf(path))),
  group: (db, path) => getDocs(collectionGroup(db, parentOf(path).split("/").pop())),
  create: (db, path) => setDoc(doc(db, `${path}-new`), { n: 1 }),
  update: (db, path) => updateDoc(doc(db, path), { n: 2 }),
  delete: (db, path) => deleteDoc(doc(db, path)),
};

async function attempt({ database, user, operation, path }) {
  try {
    await operations[operation](client(database, user), path);
    return "allowed";
  } catch (error) {
    return error.code === "permission-denied" ? "denied" : String(error);
  }
}

async function inParallel(items, act) {
  const results = [];
  for (let start = 0; start < items.length; start += PARALLEL) {
    results.push(...(await Promise.all(items.slice(start, start + PARALLEL).map(act))));
  }
  return results;
}

const owners = new Map(plan.databases.map((database) => [database, connect(database, "owner")]));
await inParallel(plan.documents, ({ database, path }) => setDoc(doc(owners.get(database), path), { n: 0 }));
const results = await inParallel(plan.attempts, attempt);
await environment.cleanup();
await Promise.all(apps.map(deleteApp));
console.log(JSON.stringify(results));
