// Command bare is the yardstick of `make bench`: the least that a worker for analyze-retry can be. It activates jobs,
// decides by hand and completes them over plain gRPC, or over REST by net/http; it has no log, metrics, retries or
// stop. Its arguments are the gateway's address and the job type.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// active is how many jobs are asked for and answered at once.
const active = 50

type output struct {
	ShouldRetry         bool      `json:"shouldRetry"`
	RetryCount          int       `json:"retryCount"`
	MaxRetries          int       `json:"maxRetries"`
	RetryReason         string    `json:"retryReason"`
	ErrorClassification string    `json:"errorClassification"`
	OriginalError       string    `json:"originalError"`
	RetryPolicy         string    `json:"retryPolicy"`
	BackoffMinutes      int       `json:"backoffMinutes"`
	BackoffDuration     string    `json:"backoffDuration"`
	NextRetryTime       time.Time `json:"nextRetryTime"`
}

var (
	permanent = []string{"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM",
		"INVALID_PROCEDURE_CODE"}
	transient = []string{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR",
		"RATE_LIMIT", "SERVER_ERROR", "503", "504"}
)

func main() {
	if strings.HasPrefix(os.Args[1], "http:") {
		runREST(os.Args[1])
	}
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	gateway, jobs := pb.NewGatewayClient(conn), make(chan *pb.ActivatedJob, active)
	for range active {
		go answerAll(gateway, jobs)
	}
	for {
		if err := activate(gateway, jobs); err != nil {
			log.Fatal(err)
		}
	}
}

func activate(gateway pb.GatewayClient, jobs chan<- *pb.ActivatedJob) error {
	stream, err := gateway.ActivateJobs(context.Background(), &pb.ActivateJobsRequest{
		Type: os.Args[2], Worker: "bare", Timeout: 10_000, RequestTimeout: 2_000,
		MaxJobsToActivate: int32(max(active-len(jobs), 1)),
		FetchVariable:     []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
	})
	for err == nil {
		var r *pb.ActivateJobsResponse
		if r, err = stream.Recv(); err == nil {
			for _, j := range r.Jobs {
				jobs <- j
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func answerAll(gateway pb.GatewayClient, jobs <-chan *pb.ActivatedJob) {
	for j := range jobs {
		if err := answer(context.Background(), gateway, j); err != nil {
			log.Fatal(err)
		}
	}
}

func answer(ctx context.Context, gateway pb.GatewayClient, j *pb.ActivatedJob) error {
	var in struct {
		SubmissionError string
		RetryCount      int
	}
	if err := json.Unmarshal([]byte(j.Variables), &in); err != nil {
		return err
	}
	out, code := decide(in.SubmissionError, in.RetryCount)
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	variables := string(text)
	if code == "" {
		_, err := gateway.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
		return err
	}
	set := &pb.SetVariablesRequest{ElementInstanceKey: j.ElementInstanceKey, Variables: variables}
	if _, err := gateway.SetVariables(ctx, set); err != nil {
		return err
	}
	_, err = gateway.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: j.Key, ErrorCode: code, Variables: variables})
	return err
}

func decide(failure string, retries int) (output, string) {
	out := output{RetryCount: retries, MaxRetries: 5, OriginalError: failure, RetryPolicy: "tiss-submission"}
	text := strings.ToUpper(failure)
	switch {
	case retries >= out.MaxRetries:
		return out, "MAX_RETRIES_EXCEEDED"
	case contains(text, permanent):
		out.ErrorClassification = "PERMANENT"
		return out, "PERMANENT_ERROR"
	case contains(text, transient):
		out.ErrorClassification = "TRANSIENT"
	default:
		out.ErrorClassification = "UNKNOWN"
	}
	minutes := min(5<<retries, 240)
	out.BackoffMinutes = max(int(float64(minutes)*(0.8+0.4*rand.Float64())), 5)
	out.ShouldRetry = true
	out.RetryCount++
	out.RetryReason = fmt.Sprintf("Transient error, retry %d of %d", out.RetryCount, out.MaxRetries)
	out.BackoffDuration = fmt.Sprintf("PT%dM", out.BackoffMinutes)
	out.NextRetryTime = time.Now().UTC().Truncate(time.Second).Add(time.Duration(out.BackoffMinutes) * time.Minute)
	return out, ""
}

func contains(text string, codes []string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(text, code) })
}
